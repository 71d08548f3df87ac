package testutil_test

import (
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/testutil"
)

func TestMariaDBConfig_Validate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  testutil.MariaDBConfig
		want []string // all of them in the message; none: valid
	}{
		"Zero":        {testutil.MariaDBConfig{}, []string{"Dir: is empty"}},
		"Good":        {testutil.MariaDBConfig{Dir: "d", ExtraArgs: []string{"--sql-mode=ANSI", "--general_log"}}, nil},
		"LineBreak":   {testutil.MariaDBConfig{Dir: "a\nb"}, []string{"MariaDBConfig.Dir"}},
		"ZeroByte":    {testutil.MariaDBConfig{Dir: "d", SocketDir: "a\x00"}, []string{"MariaDBConfig.SocketDir"}},
		"NoOption":    {testutil.MariaDBConfig{Dir: "d", ExtraArgs: []string{"-x", "", "--", "word"}}, []string{"[0]", "[1]", "[2]", "[3]"}},
		"Reserved":    {testutil.MariaDBConfig{Dir: "d", ExtraArgs: []string{"--datadir=/x", "--pid_file=/x"}}, []string{"[0]", "[1]"}},
		"Abbreviated": {testutil.MariaDBConfig{Dir: "d", ExtraArgs: []string{"--sock=/x", "--loose-data=/x"}}, []string{"[0]", "[1]"}},
		"Joined":      {testutil.MariaDBConfig{ExtraArgs: []string{"--port=1"}}, []string{"Dir", "ExtraArgs[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.cfg.Validate()
			if (err == nil) != (c.want == nil) {
				t.Fatalf("Validate() = %v, want problems %q", err, c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Validate() = %v, want it to name %q", err, want)
				}
			}
		})
	}
	if testutil.MariaDBConfig.WithDefaults(testutil.MariaDBConfig{}).Logger == nil {
		t.Error("WithDefaults leaves Logger nil")
	}
}
