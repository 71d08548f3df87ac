package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
	"github.com/tenantdal/tenantdal/quota"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestPatient_TriesAgainWhatTimeMayMendAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		pass bool
	}{
		"broken connection": {driver.ErrBadConn, true},
		"deadlock":          {&mysql.MySQLError{Number: 1213}, true},
		"time-out":          {context.DeadlineExceeded, true},
		"quota":             {quota.ErrQuotaExceeded, true},
		"broken commit":     {dal.ErrOutcomeUnknown, true},
		"unknown outcome":   {&saga.UnknownOutcomeError{Err: errors.New("away")}, true},
		"contended":         {&saga.ContendedError{Err: errors.New("busy")}, true},
		"poisoned":          {fmt.Errorf("%w: %w", dal.ErrPoisoned, errors.New("half done")), true},
		"overflow":          {&saga.OverflowError{}, false},
		"conflict":          {&saga.ConflictError{}, false},
		"field":             {&saga.FieldError{Err: errors.New("empty")}, false},
		"no table":          {&mysql.MySQLError{Number: 1146}, false},
		"suspended":         {tenant.ErrSuspended, false},
		"closed":            {saga.ErrClosed, false},
		"undeclared":        {dal.ErrUndeclared, false},
		"anything":          {errors.New("no space left"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				failed := fmt.Errorf("saga: %w", c.err)
				calls, left := 0, 3 // fails three times
				err := (&work{}).patient(t.Context(), trace.Line{No: 7}, func() error {
					if calls++; calls <= left {
						return failed
					}
					return nil
				})
				if c.pass {
					if err != nil || calls != 4 {
						t.Errorf("%v after %d calls, want none after 4", err, calls)
					}
				} else if !errors.Is(err, c.err) || calls != 1 || !strings.Contains(err.Error(), "line 7") {
					t.Errorf("%v after %d calls, want line 7's error after 1", err, calls)
				}
				if !c.pass {
					return
				}
				// It is patient, not endless.
				start := time.Now()
				left = 1 << 30
				err = (&work{}).patient(t.Context(), trace.Line{No: 7}, func() error { calls++; return failed })
				if took := time.Since(start); !errors.Is(err, c.err) || took < patience || took > patience+2*time.Second {
					t.Errorf("%v after %v, want line 7's error after %v", err, took, patience)
				}
			})
		})
	}
}
