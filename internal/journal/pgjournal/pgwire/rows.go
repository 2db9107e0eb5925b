package pgwire

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// Rows are the rows of a statement. They can be read once.
type Rows struct {
	read func(func(*pgconn.ResultReader) error) error
}

// Scan reads the first row and ignores the others. Without a row it returns [ErrNoRows]. See
// [Row.Scan].
func (r Rows) Scan(into ...any) error {
	return r.read(func(result *pgconn.ResultReader) error {
		if !result.NextRow() {
			return ErrNoRows // unless closing the result gives the server's error
		}
		return Row{result}.Scan(into...)
	})
}

// Each calls do with each row, in order. It ends with the first error of do.
func (r Rows) Each(do func(Row) error) error {
	return r.read(func(result *pgconn.ResultReader) error {
		for result.NextRow() {
			if err := do(Row{result}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Collect returns what scan makes of each row, in order. After an error it returns nothing.
func Collect[T any](rows Rows, scan func(Row) (T, error)) ([]T, error) {
	all := []T{}
	err := rows.Each(func(r Row) error {
		one, err := scan(r)
		all = append(all, one)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Row is a row of a result, until the next one is read.
type Row struct{ result *pgconn.ResultReader }

// Scan reads the columns into pointers: *int, *int64, *bool, *string, *[]byte and *[][]byte. A nil
// pointer skips its column. NULL can be read into slices alone, and makes them nil.
func (r Row) Scan(into ...any) error {
	values, columns := r.result.Values(), r.result.FieldDescriptions()
	if len(values) != len(into) || len(values) != len(columns) {
		return fmt.Errorf("a row has %d columns, and is scanned into %d values", len(values), len(into))
	}
	for i, value := range values {
		if into[i] == nil {
			continue
		}
		if err := decode(columns[i].DataTypeOID, value, into[i]); err != nil {
			return fmt.Errorf("the column %s: %w", columns[i].Name, err)
		}
	}
	return nil
}
