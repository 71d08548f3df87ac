package board

import (
	"context"
	"time"
)

// RefresherOf returns a refresher of anything.
func RefresherOf(every time.Duration, refresh func(context.Context) error) *Refresher {
	return &Refresher{refresh: refresh, check: func(context.Context) error { return nil }, every: every}
}
