package engine

import (
	"context"
	"fmt"

	"cadre/internal/agent/wake"
)

// AwaitNews waits for news for the external session that runs this process, and reports whether
// there is any. It returns at once if the session is not a member of a team, or another process
// waits for it. name and member restrict the session; "" for any.
func (e *Engine) AwaitNews(ctx context.Context, name, member string) (bool, error) {
	memberships, err := wake.Search{Teams: e.Home.Names, Folder: e.Home.Folder, Team: name,
		Member: member}.Memberships()
	if err != nil && name == "" {
		return false, fmt.Errorf("%w; with the name of the team only that is looked at", err)
	}
	if err != nil {
		return false, err
	}
	return wake.Await(ctx, memberships, func(ctx context.Context, name string) (wake.Replica, error) {
		return e.Look(ctx, name)
	})
}
