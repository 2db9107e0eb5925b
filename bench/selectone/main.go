// Command selectone connects to the database whose address is its argument, asks it for 1, and
// ends. It is what a command on a database is compared with.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
)

func main() {
	if err := ask(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func ask(ctx context.Context, address string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	one := 0
	return conn.QueryRow(ctx, "SELECT 1").Scan(&one)
}
