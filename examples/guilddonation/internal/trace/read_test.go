package trace_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
	"github.com/tenantdal/tenantdal/tenant"
)

func TestReadFile_Golden(t *testing.T) {
	t.Parallel()
	tr := readGolden(t)
	if len(tr.Setup) != 1455 || len(tr.Donations) != 2062 || len(tr.Tenants) != 8 {
		t.Fatalf("read %d setup lines, %d donations, %d tenants; want 1455, 2062, 8", len(tr.Setup), len(tr.Donations), len(tr.Tenants))
	}
	if want := (trace.Line{No: 15, Op: trace.OpStock, Tenant: "pub-a-b", Guild: "1", Item: "gold", Qty: 9223372036854775806}); tr.Setup[14] != want {
		t.Errorf("line 15 = %+v, want %+v", tr.Setup[14], want)
	}
	if want := (trace.Tenant{ID: "pub-a", Model: tenant.OwnDatabase}); tr.Tenants[1] != want {
		t.Errorf("Tenants[1] = %+v, want %+v", tr.Tenants[1], want)
	}
	if got := tr.Donations[0]; got.No != 1456 || got.Key != "d-000000" || got.Op != trace.OpDonate {
		t.Errorf("Donations[0] = %+v, want line 1456 with key d-000000", got)
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if tr.SHA256 != sha256.Sum256(data) {
		t.Errorf("SHA256 = %x, want that of the file, %x", tr.SHA256, sha256.Sum256(data))
	}
}

const (
	pub   = `{"op":"tenant","id":"pub","model":"shared"}`
	guild = `{"op":"guild","tenant":"pub","guild":"1","status":"open"}`
)

// text makes a trace line of the op in which one field has another value, given as JSON; an empty value leaves the field out.
func text(op, field, value string) string {
	fields := map[string][]string{
		"tenant": {"id", `"new"`, "model", `"schema"`},
		"guild":  {"tenant", `"pub"`, "guild", `"2"`, "status", `"open"`},
		"stock":  {"tenant", `"pub"`, "guild", `"1"`, "item", `"gold"`, "qty", `5`},
		"grant":  {"tenant", `"pub"`, "player", `"7"`, "item", `"gold"`, "qty", `5`},
		"donate": {"tenant", `"pub"`, "key", `"k"`, "player", `"7"`, "guild", `"1"`, "item", `"gold"`, "qty", `5`},
	}[op]
	var b strings.Builder
	fmt.Fprintf(&b, `{"op":%q`, op)
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == field {
			fields[i+1] = value
		}
		if fields[i+1] != "" {
			fmt.Fprintf(&b, `,%q:%s`, fields[i], fields[i+1])
		}
	}
	return b.String() + "}"
}

func TestRead_Refuses(t *testing.T) {
	t.Parallel()
	type mistake struct {
		name   string
		lines  []string // the mistake is in the last of them
		field  string
		reason string // part of the reason
	}
	long := strings.Repeat("x", trace.MaxLineLen)
	cases := []mistake{
		{"NoJSON", []string{pub, `hello`}, "", "malformed JSON at byte 1"},
		{"CutOff", []string{pub, `{"op":"tenant","id":"x"`}, "", "malformed JSON"},
		{"NoComma", []string{pub, `{"op":"tenant" "id":"x","model":"shared"}`}, "", "malformed JSON"},
		{"TrailingComma", []string{`{"op":"tenant","id":"x","model":"shared",}`}, "", "malformed JSON"},
		{"TrailingText", []string{pub + "x"}, "", "malformed JSON"},
		{"TwoObjects", []string{pub + pub}, "", "malformed JSON"},
		{"ObjectOverTwoLines", []string{`{"op":"tenant",`}, "", "malformed JSON"},
		{"SingleQuotes", []string{`{'op':'tenant'}`}, "", "malformed JSON"},
		{"ControlCharacter", []string{text("donate", "item", "\"a\x01b\"")}, "", "malformed JSON"},
		{"BadEscape", []string{text("donate", "item", `"\x"`)}, "", "malformed JSON"},
		{"PlusSign", []string{text("donate", "qty", `+5`)}, "", "malformed JSON"},
		{"LeadingZero", []string{text("donate", "qty", `05`)}, "", "malformed JSON"},
		{"NaN", []string{text("donate", "qty", `NaN`)}, "", "malformed JSON"},
		{"Comment", []string{`// ` + pub}, "", "malformed JSON"},
		{"List", []string{pub, `["op"]`}, "", "not a JSON object"},
		{"Text", []string{`"op"`}, "", "not a JSON object"},
		{"Number", []string{`5`}, "", "not a JSON object"},
		{"Null", []string{`null`}, "", "not a JSON object"},
		{"ByteOrderMark", []string{"\ufeff" + pub}, "", "byte order mark"},
		{"NotUTF8", []string{pub, text("donate", "item", "\"a\xffb\"")}, "", "not UTF-8 at byte 75"},
		{"CutUTF8", []string{text("donate", "item", "\"\xe6\x98\"")}, "", "not UTF-8"},
		{"EncodedSurrogate", []string{text("donate", "item", "\"\xed\xa0\x80\"")}, "", "not UTF-8"},
		{"LoneHighSurrogate", []string{text("donate", "item", `"a\ud83d"`)}, "item", "surrogate"},
		{"LoneLowSurrogate", []string{text("donate", "key", `"\udc00\ud83d"`)}, "key", "surrogate"},
		{"TwoHighSurrogates", []string{text("donate", "key", `"\ud83d\ud83d\ude00"`)}, "key", "surrogate"},
		{"SurrogateThenEscape", []string{text("donate", "key", `"\ud83d\n"`)}, "key", "surrogate"},
		{"SurrogateInName", []string{`{"op":"tenant","\ud83d":1}`}, "\ufffd", "surrogate"},
		{"LongLine", []string{pub, `{"op":"` + long + `"}`}, "", "longer than 1048576 bytes"},
		{"LongLineByOne", []string{pub + strings.Repeat(" ", trace.MaxLineLen+1-len(pub))}, "", "longer than 1048576 bytes"},

		{"NoOp", []string{`{"id":"x","model":"shared"}`}, "op", "missing"},
		{"EmptyObject", []string{`{}`}, "op", "missing"},
		{"OpInOtherCase", []string{`{"Op":"tenant","id":"x","model":"shared"}`}, "op", "missing"},
		{"OpNumber", []string{`{"op":5}`}, "op", "want text, got the number 5"},
		{"OpUnknown", []string{`{"op":"burn"}`}, "op", `unknown op "burn"`},
		{"OpValueInOtherCase", []string{`{"op":"Tenant","id":"x","model":"shared"}`}, "op", `unknown op "Tenant"`},
		{"OpTwice", []string{`{"op":"tenant","op":"tenant","id":"x","model":"shared"}`}, "op", "given twice"},
		{"FieldTwice", []string{`{"op":"tenant","id":"x","id":"y","model":"shared"}`}, "id", "given twice"},
		{"FieldTwiceByEscape", []string{`{"op":"tenant","id":"x","\u0069d":"y","model":"shared"}`}, "id", "given twice"},
		{"FieldUnknown", []string{`{"op":"tenant","id":"x","model":"shared","note":null}`}, "note", "unknown in a tenant line"},
		{"FieldOfAnotherOp", []string{text("donate", "qty", `5,"status":"open"`)}, "status", "unknown in a donate line"},
		{"FieldInOtherCase", []string{`{"op":"tenant","ID":"x","model":"shared"}`}, "ID", "unknown in a tenant line"},
		{"FieldKelvinSign", []string{strings.Replace(text("donate", "", ""), `"key"`, "\"\u212aey\"", 1)}, "\u212aey", "unknown in a donate line"},

		{"ModelUnknown", []string{text("tenant", "model", `"Shared"`)}, "model", "unknown isolation model"},
		{"TenantTwice", []string{pub, pub}, "id", "declared twice"},
		{"TenantTwiceOtherModel", []string{pub, `{"op":"tenant","id":"pub","model":"schema"}`}, "id", "declared twice"},
		{"StatusUnknown", []string{pub, text("guild", "status", `"OPEN"`)}, "status", `unknown status "OPEN"`},
		{"GuildClosedLater", []string{pub, guild, strings.Replace(guild, "open", "closed", 1)}, "status", "is open by an earlier line"},
		{"BagPast63Bits", []string{pub, text("grant", "qty", "9223372036854775807"), text("grant", "qty", "1")}, "qty", "more than 2^63-1"},
		{"WarehousePast63Bits", []string{pub, text("stock", "qty", "1"), text("stock", "qty", "4611686018427387904"), text("stock", "qty", "4611686018427387903")}, "qty", "more than 2^63-1"},
	}
	for _, op := range []string{"tenant", "guild", "stock", "grant", "donate"} {
		var fields []string
		for name, of := range map[string]string{
			"id": "tenant", "model": "tenant", "tenant": "guild stock grant donate", "guild": "guild stock donate", "status": "guild",
			"player": "grant donate", "key": "donate", "item": "stock grant donate", "qty": "stock grant donate",
		} {
			if strings.Contains(of, op) {
				fields = append(fields, name)
			}
		}
		for _, field := range fields {
			name := op + "/" + field
			cases = append(cases,
				mistake{name + "/Missing", []string{pub, text(op, field, "")}, field, "missing"},
				mistake{name + "/Null", []string{pub, text(op, field, `null`)}, field, "got null"},
				mistake{name + "/Boolean", []string{pub, text(op, field, `true`)}, field, "got a boolean"},
				mistake{name + "/List", []string{pub, text(op, field, `[[1],{"a":[]}]`)}, field, "got a list"},
				mistake{name + "/Object", []string{pub, text(op, field, `{"a":{"b":[1]}}`)}, field, "got an object"},
			)
			if field != "qty" {
				cases = append(cases, mistake{name + "/Number", []string{pub, text(op, field, `7`)}, field, "want text, got the number 7"})
				continue
			}
			cases = append(cases, mistake{name + "/Text", []string{pub, text(op, field, `"5"`)}, field, `want a whole number, got the text "5"`})
			for _, number := range []string{"1.5", "5.0", "1e3", "1E3", "5e0", "1e-3", "9223372036854775808", "-9223372036854775809", "-0.0", "1" + strings.Repeat("0", 400)} {
				cases = append(cases, mistake{name + "/" + number[:min(len(number), 24)], []string{pub, text(op, field, number)}, field, "is no whole number of 64 bits"})
			}
		}
		if op == "donate" {
			continue
		}
		for _, id := range []string{"", "Pub", "pub ", "_pub", "-pub", "p.b", "püb", strings.Repeat("p", 64), "pub\x00", "../pub"} {
			field := "tenant"
			if op == "tenant" {
				field = "id"
			}
			cases = append(cases, mistake{fmt.Sprintf("%s/tenant/%q", op, id), []string{pub, text(op, field, jsonText(id))}, field, "is no tenant id: "})
		}
		if op == "tenant" {
			continue
		}
		cases = append(cases,
			mistake{op + "/tenant/Undeclared", []string{pub, text(op, "tenant", `"pub-a"`)}, "tenant", `no line before this one declares tenant "pub-a"`},
			mistake{op + "/tenant/DeclaredLater", []string{text(op, "", "")}, "tenant", `no line before this one declares tenant "pub"`},
		)
		owner := "guild"
		if op == "grant" {
			owner = "player"
		}
		cases = append(cases,
			mistake{op + "/" + owner + "/Empty", []string{pub, text(op, owner, `""`)}, owner, "empty"},
			mistake{op + "/" + owner + "/Zero", []string{pub, text(op, owner, `"0"`)}, owner, `"0" is no ` + owner},
		)
		if op == "guild" {
			continue
		}
		cases = append(cases, mistake{op + "/item/Empty", []string{pub, text(op, "item", `""`)}, "item", "empty"})
		for _, qty := range []string{"0", "-0", "-1", "-9223372036854775808"} {
			cases = append(cases, mistake{op + "/qty/" + qty, []string{pub, text(op, "qty", qty)}, "qty", "is not above 0"})
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr, err := parse(c.lines...)
			var first *trace.LineError
			if tr != nil || !errors.As(err, &first) {
				t.Fatalf("Read = %v, %v; want a *LineError", tr, err)
			}
			if !errors.Is(err, trace.ErrUnusable) || !errors.Is(first, trace.ErrUnusable) {
				t.Errorf("%v is not ErrUnusable", err)
			}
			if first.File != "t.ndjson" || first.Line != len(c.lines) || first.Field != c.field || !strings.Contains(first.Reason, c.reason) {
				t.Errorf("LineError = %+v, want t.ndjson, line %d, field %q, reason with %q", first, len(c.lines), c.field, c.reason)
			}
			if c.field != "" && !strings.Contains(err.Error(), fmt.Sprintf("t.ndjson:%d: field %q: ", len(c.lines), c.field)) {
				t.Errorf("the message does not name file, line and field: %v", err)
			}
			if len(err.Error()) > 500 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

// jsonText is s as JSON, without the replacements of encoding/json.
func jsonText(s string) string {
	return `"` + strings.NewReplacer("\x00", `\u0000`, `"`, `\"`).Replace(s) + `"`
}

func TestRead_Accepts(t *testing.T) {
	t.Parallel()
	grant := text("grant", "", "")
	most := text("grant", "qty", "9223372036854775807")
	cases := []struct {
		name   string
		trace  string
		setup  int
		donate int
	}{
		{"Nothing", "", 0, 0},
		{"OnlyBlankLines", "\n \n\t\r\n", 0, 0},
		{"NoLastLineFeed", pub + "\n" + grant, 2, 0},
		{"LastLineFeed", pub + "\n" + grant + "\n", 2, 0},
		{"BlankLinesAtTheEnd", pub + "\n\n  \n", 1, 0},
		{"CarriageReturns", pub + "\r\n" + grant + "\r\n", 2, 0},
		{"BlanksAround", " \t" + pub + " \t\n", 1, 0},
		{"LongestLine", pub + strings.Repeat(" ", trace.MaxLineLen-len(pub)) + "\n" + grant + "\n", 2, 0},
		{"LongestLineAtTheEnd", pub + strings.Repeat(" ", trace.MaxLineLen-len(pub)), 1, 0},
		{"DonateFirst", text("donate", "", "") + "\n" + pub + "\n" + grant, 2, 1},
		{"DonateOfNobody", text("donate", "tenant", `"nobody"`), 0, 1},
		{"DonateOfIllFormedTenant", text("donate", "tenant", `"No Body"`), 0, 1},
		{"DonateEmptyIDs", text("donate", "player", `""`) + "\n" + text("donate", "guild", `""`) + "\n" + text("donate", "item", `""`) + "\n" + text("donate", "key", `""`), 0, 4},
		{"DonateZeroIDs", text("donate", "player", `"0"`) + "\n" + text("donate", "guild", `"0"`), 0, 2},
		{"DonateAnyQty", text("donate", "qty", `-9223372036854775808`) + "\n" + text("donate", "qty", `0`) + "\n" + text("donate", "qty", `9223372036854775807`), 0, 3},
		{"GuildTwice", pub + "\n" + guild + "\n" + guild, 3, 0},
		{"StockOfNoGuild", pub + "\n" + text("stock", "", ""), 2, 0},
		{"FullBag", pub + "\n" + most, 2, 0},
		{"FullBagByTwo", pub + "\n" + text("grant", "qty", "9223372036854775806") + "\n" + text("grant", "qty", "1"), 3, 0},
		{"FullBagsOfTwoItems", pub + "\n" + most + "\n" + strings.Replace(most, "gold", "gold ", 1), 3, 0},
		{"FullBagsOfTwoPlayers", pub + "\n" + most + "\n" + strings.Replace(most, `"7"`, `"07"`, 1), 3, 0},
		{"FullBagAndFullWarehouseOfOneID", pub + "\n" + most + "\n" + strings.Replace(text("stock", "qty", "9223372036854775807"), `"1"`, `"7"`, 1), 3, 0},
		{"FullBagsOfTwoTenants", pub + "\n" + text("tenant", "", "") + "\n" + most + "\n" + strings.Replace(most, "pub", "new", 1), 4, 0},
		{"TenantZero", `{"op":"tenant","id":"0","model":"database"}`, 1, 0},
		{"ZerosThatAreNotZero", pub + "\n" + text("grant", "player", `"00"`) + "\n" + text("grant", "player", `" 0"`) + "\n" + text("grant", "item", `"0"`), 4, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for reader, r := range map[string]io.Reader{"whole": strings.NewReader(c.trace), "byte by byte": iotest.OneByteReader(strings.NewReader(c.trace))} {
				tr, err := trace.Read(r, "t.ndjson")
				if err != nil {
					t.Fatalf("Read %s: %v", reader, err)
				}
				if len(tr.Setup) != c.setup || len(tr.Donations) != c.donate {
					t.Errorf("Read %s: %d setup lines, %d donations; want %d, %d", reader, len(tr.Setup), len(tr.Donations), c.setup, c.donate)
				}
				if tr.SHA256 != sha256.Sum256([]byte(c.trace)) {
					t.Errorf("Read %s: the hash is not that of the text", reader)
				}
			}
		})
	}
}

func TestRead_TextIsKeptByteByByte(t *testing.T) {
	t.Parallel()
	for escaped, want := range map[string]string{
		`"gold "`: "gold ", `"\u0067old"`: "gold", `"\ud83d\uDE00"`: "😀", `"😀"`: "😀", `"\\ud83d"`: `\ud83d`, `"\\\ud83d\ude00\""`: `\😀"`,
		`"\u0000"`: "\x00", `"\u2028<&>\/"`: "\u2028<&>/", `"é"`: "é", `"e\u0301"`: "e\u0301", `"\ufffd"`: "\ufffd", `"007"`: "007",
	} {
		t.Run(escaped, func(t *testing.T) {
			t.Parallel()
			tr := mustParse(t, pub, text("grant", "item", escaped), text("donate", "item", escaped))
			if tr.Setup[1].Item != want || tr.Donations[0].Item != want {
				t.Errorf("%s read as %q and %q, want %q", escaped, tr.Setup[1].Item, tr.Donations[0].Item, want)
			}
			back, err := trace.Read(bytes.NewReader(written(t, tr)), "t.ndjson")
			if err != nil || back.Setup[1].Item != want {
				t.Errorf("written and read again: %v, %v; want item %q", back, err, want)
			}
		})
	}
}

func TestRead_BlankLineInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, blank := range []string{"", " ", "\t\r"} {
		_, err := parse(pub, blank, "", guild)
		var line *trace.LineError
		if !errors.As(err, &line) || line.Line != 2 || !strings.Contains(line.Reason, "blank line") {
			t.Errorf("Read with %q as line 2 = %v, want a LineError of line 2", blank, err)
		}
	}
}

func TestRead_ManyMistakes(t *testing.T) {
	t.Parallel()
	bad := `{"op":"tenant","id":"Bad","model":"shared"}`
	for _, c := range []struct {
		name  string
		lines []string
		want  []int // line numbers
		cut   bool
	}{
		{"Three", []string{bad, pub, "x", guild, `{"op":"guild"}`}, []int{1, 3, 5}, false},
		{"Twenty", slicesOf(bad, 20), upTo(20), false},
		{"TwentyOne", slicesOf(bad, 21), upTo(20), true},
		{"TwentiethIsBlank", append(slicesOf(bad, 19), "", bad, bad), upTo(20), true},
		// The tenant's line is wrong, its other lines are not.
		{"WrongModelIsOneMistake", []string{`{"op":"tenant","id":"pub","model":"own"}`, guild, text("grant", "", "")}, []int{1}, false},
		{"AfterALongLine", []string{strings.Repeat("x", 3*trace.MaxLineLen), pub, "x"}, []int{1, 3}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(c.lines...)
			var all *trace.LineErrors
			if !errors.As(err, &all) {
				t.Fatalf("Read = %v, want *LineErrors", err)
			}
			var got []int
			for _, e := range all.Lines {
				got = append(got, e.Line)
			}
			if !reflect.DeepEqual(got, c.want) || all.Cut != c.cut {
				t.Errorf("mistakes in lines %v, cut %t; want %v, %t", got, all.Cut, c.want, c.cut)
			}
			if n := strings.Count(err.Error(), "t.ndjson:"); n != len(c.want) {
				t.Errorf("the message names %d lines, want %d:\n%v", n, len(c.want), err)
			}
			if cut := strings.Contains(err.Error(), "not looked at"); cut != c.cut {
				t.Errorf("the message says that reading stopped: %t, want %t:\n%v", cut, c.cut, err)
			}
		})
	}
}

func slicesOf(line string, n int) []string {
	var lines []string
	for range n {
		lines = append(lines, line)
	}
	return lines
}

func upTo(n int) []int {
	var numbers []int
	for i := range n {
		numbers = append(numbers, i+1)
	}
	return numbers
}

func TestRead_ReaderFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	_, err := trace.Read(io.MultiReader(strings.NewReader(pub+"\n"), iotest.ErrReader(broken)), "t.ndjson")
	if !errors.Is(err, trace.ErrUnusable) || !errors.Is(err, broken) || !strings.Contains(err.Error(), "t.ndjson") {
		t.Errorf("Read = %v, want ErrUnusable, the reader's error and the name", err)
	}
}

func TestReadFile_Fails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.ndjson")
	if _, err := trace.ReadFile(missing); !errors.Is(err, trace.ErrUnusable) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("ReadFile of a missing file = %v, want ErrUnusable, fs.ErrNotExist and the name", err)
	}
	if _, err := trace.ReadFile(dir); !errors.Is(err, trace.ErrUnusable) || !strings.Contains(err.Error(), dir) {
		t.Errorf("ReadFile of a folder = %v, want ErrUnusable and the name", err)
	}
}
