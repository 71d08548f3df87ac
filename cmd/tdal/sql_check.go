package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// The verdicts of sql check.
const (
	verdictScoped    = "scoped"
	verdictRewritten = "rewritten"
	verdictRefused   = "refused"
)

// checked is what sql check says of one statement; with --json it is printed as it is. docs/sql-check.md is its contract.
type checked struct {
	N       int    `json:"n"` // from 1, over all files
	Verdict string `json:"verdict"`
	SQL     string `json:"sql"`    // what leaves; of a refused one, what was read
	Args    []any  `json:"args"`   // for each placeholder of SQL: "tenant", or the number of the statement's own placeholder, from 1
	Reason  string `json:"reason"` // of a refused one, its hint included; else empty

	hint  string // the hint apart, for people
	where string // file and line, for people
}

type sqlCheckOptions struct {
	schema, dialect string
	json            bool
}

func newSQLCheck() *cobra.Command {
	var o sqlCheckOptions
	c := &cobra.Command{
		Use:   "check --schema FILE [FILE...]",
		Short: "Say which statements are scoped, rewritten or refused for a tenant",
		Long: `Check reads SQL statements, each ended by a semicolon, from files or from standard input, and says of each what the gate will say of it
when a tenant's handle sends it:

  scoped     every tenant table in it is bound to the tenant; it leaves as it is
  rewritten  it leaves with the tenant put in; the text is shown
  refused    it does not leave; the reason and a hint are shown

The schema file lists the tables:

  tenant_column: tenant_id        # tenant_id if left out
  tenant: [items, players]        # tables with the tenant column; at least one
  global: [catalog]               # read by all
  system: [jobs]                  # closed to tenants
  shard_keys: {items: player_id}  # optional: rows are not inserted without them

A semicolon in quotes or in a comment ends nothing. A statement with a comment is refused, as it is at run time. @tenant stands for the tenant's id.
Values are not known here: at run time, whatever is compared with the tenant column must be the tenant.

Exit codes: 0 no statement is refused, 1 at least one is, 2 wrong arguments, an unreadable file, a schema file that is not understood.`,
		Example: `  tdal sql check --schema tables.yaml queries.sql
  echo 'SELECT * FROM items WHERE id = ?' | tdal sql check --schema tables.yaml --dialect sqlite --json`,
		RunE: func(c *cobra.Command, files []string) error {
			return sqlCheck(o, files, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&o.schema, "schema", "", "YAML file that lists the tables (required)")
	c.Flags().StringVar(&o.dialect, "dialect", gate.MySQL.String(), "mysql (MariaDB too), sqlite or postgres")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON object a statement, one a line")
	return c
}

// sqlCheck judges the statements of files, or of in when there are none. Everything is read before anything is printed.
func sqlCheck(o sqlCheckOptions, files []string, in io.Reader, out, errs io.Writer) error {
	d, err := dialectOf(o.dialect)
	if err != nil {
		return err
	}
	if o.schema == "" {
		return errors.New("--schema FILE is missing")
	}
	data, err := os.ReadFile(o.schema)
	if err != nil {
		return err
	}
	schema, err := readSchema(data, d)
	if err != nil {
		return fmt.Errorf("%s: %w", o.schema, err)
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	var list []checked
	refused := 0
	for _, name := range files {
		var text []byte
		if name == "-" {
			text, err = io.ReadAll(in)
		} else {
			text, err = os.ReadFile(name)
		}
		if err != nil {
			return err
		}
		for _, p := range gate.Split(d, string(text)) {
			c := check(schema, p.Text)
			c.N = len(list) + 1
			c.where = "line " + strconv.Itoa(p.Line)
			if name != "-" {
				c.where = name + ":" + strconv.Itoa(p.Line)
			}
			if c.Verdict == verdictRefused {
				refused++
			}
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(errs, "tdal: no statements")
	}
	show := showText
	if o.json {
		show = showJSON
	}
	if err := show(out, list); err != nil {
		return err
	}
	if refused > 0 {
		return errFound
	}
	return nil
}

// check judges one statement.
func check(s *gate.Schema, text string) checked {
	c := checked{Verdict: verdictScoped, SQL: text, Args: []any{}}
	v := s.Judge(text)
	switch {
	case v.Refusal != nil:
		c.Verdict, c.Reason, c.hint = verdictRefused, v.Refusal.Reason, v.Refusal.Hint
		if v.Refusal.Table != "" && !strings.Contains(c.Reason, v.Refusal.Table) {
			c.Reason += ": " + v.Refusal.Table
		}
	case v.Rewrite != nil:
		c.Verdict, c.SQL = verdictRewritten, v.Rewrite.Text
		for _, arg := range v.Rewrite.Args {
			if arg == gate.TenantArg {
				c.Args = append(c.Args, "tenant")
				continue
			}
			c.Args = append(c.Args, arg+1)
		}
	default:
		for n := range v.Args {
			c.Args = append(c.Args, n+1)
		}
	}
	return c
}

func showJSON(out io.Writer, list []checked) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, c := range list {
		if c.hint != "" {
			c.Reason += "; " + c.hint
		}
		if err := enc.Encode(c); err != nil {
			return err
		}
	}
	return nil
}

func showText(out io.Writer, list []checked) error {
	for _, c := range list {
		var err error
		switch c.Verdict {
		case verdictScoped:
			_, err = fmt.Fprintf(out, "%d (%s): scoped\n", c.N, c.where)
		case verdictRewritten:
			_, err = fmt.Fprintf(out, "%d (%s): rewritten: %s\n", c.N, c.where, c.SQL)
		case verdictRefused:
			_, err = fmt.Fprintf(out, "%d (%s): refused: %s\n", c.N, c.where, c.Reason)
			if err == nil && c.hint != "" {
				_, err = fmt.Fprintf(out, "    hint: %s\n", c.hint)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
