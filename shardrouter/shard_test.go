package shardrouter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/shardrouter"
)

func TestParseShardID(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"s1", "0", "A", "a.b_c-d", "-", ".", strings.Repeat("x", 64)} {
		if id, err := shardrouter.ParseShardID(s); err != nil || string(id) != s || id.String() != s {
			t.Errorf("ParseShardID(%q) = %q, %v", s, id, err)
		}
	}
	for _, s := range []string{"", "a#1", "a b", "s1 ", "a/b", "é", "a\x00", "\xff", "a\n", `a"`, strings.Repeat("x", 65), strings.Repeat("x", 1<<20)} {
		id, err := shardrouter.ParseShardID(s)
		var invalid *shardrouter.InvalidShardError
		if id != "" || !errors.Is(err, shardrouter.ErrInvalidShard) || !errors.As(err, &invalid) || len(invalid.Value) > 64 || len(err.Error()) > 400 {
			t.Errorf("ParseShardID(%.70q) = %q, %v, want ErrInvalidShard", s, id, err)
		}
	}
}
