package shardrouter

import (
	"fmt"
	"strconv"
	"strings"
)

// partMark stands between a key and the number of its part. A key that holds one cannot be split, so no part is taken for another key's.
const partMark = "#"

// MaxParts is the largest number of parts of one key.
const MaxParts = 4096

// PartsError reports a key that cannot be split as asked.
type PartsError struct {
	Key    Key
	Parts  int
	Reason string
}

// Error names the key, the number and the reason.
func (e *PartsError) Error() string {
	return fmt.Sprintf("shardrouter: key %q in %d parts: %s", e.Key, e.Parts, e.Reason)
}

// Parts returns the n parts of a key that is split on purpose, since one shard cannot carry it: "42#0" to "42#<n-1>", in this order. Each part is a key
// of its own and goes where its hash says, so a reader of the whole asks all of them. The same key and number give the same parts for ever; another
// number gives the rows other places, so it is fixed before the first row.
//
// It returns [ErrEmptyKey], [ErrZeroKey], and a [*PartsError] for a key that holds "#", which may be a part already, and for n outside 1 to [MaxParts].
func Parts(key Key, n int) ([]Key, error) {
	if err := checkParts(key, n); err != nil {
		return nil, err
	}
	parts := make([]Key, n)
	for i := range parts {
		parts[i] = part(key, i)
	}
	return parts, nil
}

// PartOf returns the one part among n of a key in which what is named by by belongs: a member's id, say. Equal values of by give equal parts, evenly
// spread over different ones by the topology's hash; see [Parts] for the errors. by may be empty.
func PartOf(key Key, n int, by string) (Key, error) {
	if err := checkParts(key, n); err != nil {
		return "", err
	}
	return part(key, int(HashBare(by)%uint64(n))), nil
}

// SplitPart returns the key and the number of a part, and false for a key that is none.
func SplitPart(k Key) (key Key, number int, ok bool) {
	whole, digits, found := strings.Cut(string(k), partMark)
	n, err := strconv.Atoi(digits)
	if !found || err != nil || n < 0 || n >= MaxParts || strconv.Itoa(n) != digits || Key(whole).Validate() != nil {
		return "", 0, false
	}
	return Key(whole), n, true
}

func part(key Key, i int) Key { return key + partMark + Key(strconv.Itoa(i)) }

func checkParts(key Key, n int) error {
	if err := key.Validate(); err != nil {
		return err
	}
	switch {
	case strings.Contains(string(key), partMark):
		return &PartsError{Key: key, Parts: n, Reason: "it holds " + partMark + ", as a part does"}
	case n < 1 || n > MaxParts:
		return &PartsError{Key: key, Parts: n, Reason: fmt.Sprintf("want 1 to %d parts", MaxParts)}
	}
	return nil
}
