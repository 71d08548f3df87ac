package gate

import (
	"slices"
	"strconv"
	"strings"
)

// edit puts text in place of text[start:end]. Each 0 byte in it is a placeholder of the tenant.
type edit struct {
	start, end int
	text       string
}

// rewrite splices the edits into the original text and lists which value goes to which placeholder. Nothing is printed back from the tree: what was
// not edited is the caller's text, byte for byte. PostgreSQL's placeholders are numbered anew, in order.
func rewrite(d Dialect, text string, tokens []token, edits []edit) *Rewrite {
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return min(a.end-a.start, 1) - min(b.end-b.start, 1) // what is inserted stands before what is replaced
	})
	w := writer{d: d, numbers: map[int]int{}}
	w.b.Grow(len(text) + 64*len(edits))
	at, holes := 0, 0
	next := 0 // the next token to look at
	copyTo := func(end int) {
		for ; next < len(tokens) && tokens[next].start < end; next++ {
			t := &tokens[next]
			if t.kind != tokenHole {
				continue
			}
			w.b.WriteString(text[at:t.start])
			arg := holes
			if d == Postgres {
				arg = t.number - 1
			}
			holes++
			w.placeholder(arg)
			at = t.end
		}
		if end > at {
			w.b.WriteString(text[at:end])
			at = end
		}
	}
	for _, e := range edits {
		copyTo(e.start)
		for i := 0; i < len(e.text); i++ {
			if e.text[i] == 0 {
				w.placeholder(TenantArg)
				continue
			}
			w.b.WriteByte(e.text[i])
		}
		if e.end > at {
			for next < len(tokens) && tokens[next].start < e.end {
				next++
			}
			at = e.end
		}
	}
	copyTo(len(text))
	return &Rewrite{Text: w.b.String(), Args: w.args}
}

// writer prints placeholders and notes their values.
type writer struct {
	d       Dialect
	b       strings.Builder
	args    []int
	numbers map[int]int // PostgreSQL: the new number of an original value
}

func (w *writer) placeholder(arg int) {
	if w.d != Postgres {
		w.b.WriteByte('?')
		w.args = append(w.args, arg)
		return
	}
	n, known := w.numbers[arg]
	if !known || arg == TenantArg {
		w.args = append(w.args, arg)
		n = len(w.args)
		w.numbers[arg] = n
	}
	w.b.WriteByte('$')
	w.b.WriteString(strconv.Itoa(n))
}
