package wire

import (
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestWithoutValue(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Truncated incorrect DOUBLE value: 'secret'":                             "Truncated incorrect DOUBLE value: (not shown)",
		"Incorrect integer value: 'it's secret' for column `d`.`t`.`n` at row 1": "Incorrect integer value: (not shown) for column `d`.`t`.`n` at row 1",
		"Something else": "Something else",
	} {
		err := withoutValue(&mysql.MySQLError{Number: 1292, Message: in})
		if !strings.HasSuffix(err.Error(), want) || Code(err) != 1292 {
			t.Errorf("%q became %q", in, err)
		}
	}
	dup := &mysql.MySQLError{Number: 1062, Message: "Duplicate entry: 'x'"}
	if got := withoutValue(dup); got != error(dup) {
		t.Errorf("%v", got)
	}
}
