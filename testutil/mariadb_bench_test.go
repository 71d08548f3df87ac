//go:build linux

package testutil_test

import (
	"context"
	"testing"

	"github.com/tenantdal/tenantdal/testutil"
)

// BenchmarkMariaDB shows what a test pays for its servers: three from nothing, and one more start of one that has data.
func BenchmarkMariaDB(b *testing.B) {
	b.Run("ThreeFresh", func(b *testing.B) {
		// NewMariaDBCluster cleans up at the end of the benchmark, so -benchtime=1x is the run that shows one start.
		for b.Loop() {
			testutil.NewMariaDBCluster(b, 3)
		}
	})
	b.Run("Restart", func(b *testing.B) {
		m := testutil.NewMariaDBCluster(b, 1)[0]
		for b.Loop() {
			if err := m.Restart(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
