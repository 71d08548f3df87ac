package control_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tenantdal/tenantdal/testutil"
)

// Nothing that a store starts outlives it.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(testutil.StopSharedMariaDB(), testutil.StopSharedPostgres()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
