package tenant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// MaxKeyLen is the largest length of a shard key in an [Envelope], in bytes.
const MaxKeyLen = 255

// maxKeyspaceLen is the largest length of a keyspace's name in bytes, as in package shardrouter.
const maxKeyspaceLen = 63

// Head is what a gateway needs of an encoded envelope to direct it: the tenant, and the shard key if the envelope has one. It is not proof of anything:
// where the bytes come from somebody who may only act for one tenant, compare Tenant with what was proved.
type Head struct {
	Tenant   ID
	Keyspace string // "" for an envelope without a key
	Key      string // the key's canonical text, as it was before encoding; "" as Keyspace is
}

// Peek returns the head of an encoded envelope from its first bytes, without reading the rest: for a gateway that directs all jobs about one key to one
// place. The head ends with the version, so an envelope without a key is known from one that was cut off before it; nothing after it is looked at or
// checked, and the worker still decodes. Where [DecodeEnvelope] accepts the envelope, both name the same tenant and key.
//
// An envelope that does not begin with its whole tenant is [ErrNoTenant]; an ill-formed tenant is an [*InvalidIDError]. Where the tenant stands but the rest of
// the head is cut off, in another order, ill-formed or of an unknown version, it is an [*EnvelopeError]; never a head without a key. It allocates what it returns,
// and more for a key that JSON escapes.
func Peek(data []byte) (Head, error) {
	id, rest, err := peekTenant(data)
	if err != nil {
		return Head{}, err
	}
	h := Head{Tenant: id}
	version := byte('0' + envelopeVersion)
	if after, ok := cut(rest, ",", `"keyspace"`, ":"); ok {
		version = '0' + envelopeKeyedVersion
		if h.Keyspace, rest, err = peekText(after, "keyspace", maxKeyspaceLen); err != nil {
			return Head{}, err
		}
		if rest, ok = cut(rest, ",", `"key"`, ":"); !ok {
			return Head{}, errHead("key")
		}
		if h.Key, rest, err = peekText(rest, "key", MaxKeyLen); err != nil {
			return Head{}, err
		}
		if err := checkKey(h.Keyspace, h.Key); err != nil {
			return Head{}, err
		}
	}
	rest, ok := cut(rest, ",", `"v"`, ":", string(version))
	if !ok || len(rest) == 0 || bytes.IndexByte([]byte(", }\t\r\n"), rest[0]) < 0 {
		return Head{}, errHead("v")
	}
	return h, nil
}

func errHead(field string) error {
	return &EnvelopeError{Field: field, Reason: "it is not whole where the head has it, or not of a known form"}
}

// PeekTenant returns the tenant of an encoded envelope from its first bytes, without reading the rest: for a gateway
// that directs jobs by tenant. It checks nothing but the head, so the worker still decodes; where [DecodeEnvelope]
// accepts the envelope, both name the same tenant.
//
// An envelope that does not begin with its whole tenant is [ErrNoTenant]; an ill-formed tenant is an [*InvalidIDError].
func PeekTenant(b []byte) (ID, error) {
	id, _, err := peekTenant(b)
	return id, err
}

// peekTenant is PeekTenant, with what follows the tenant.
func peekTenant(b []byte) (ID, []byte, error) {
	b, ok := cut(b, "{", `"tenant"`, ":", `"`)
	if !ok {
		return "", nil, ErrNoTenant
	}
	head := b[:min(len(b), MaxIDLen+1)]
	switch end := bytes.IndexByte(head, '"'); {
	case end > 0:
		id, err := ParseID(string(head[:end]))
		return id, b[end+1:], err
	case end < 0 && len(head) > MaxIDLen:
		id, err := ParseID(string(head)) // too long
		return id, nil, err
	}
	// Empty, or cut off within the tenant: the first half of an id is another id.
	return "", nil, ErrNoTenant
}

// cut takes tokens off the front of b, with the blanks before each.
func cut(b []byte, tokens ...string) ([]byte, bool) {
	for _, token := range tokens {
		b = bytes.TrimLeft(b, " \t\r\n")
		if len(b) < len(token) || string(b[:len(token)]) != token {
			return b, false
		}
		b = b[len(token):]
	}
	return b, true
}

// peekText reads a JSON string of at most limit bytes off the front of b.
func peekText(b []byte, field string, limit int) (string, []byte, error) {
	b, ok := cut(b, `"`)
	if !ok {
		return "", nil, errHead(field)
	}
	plain := true
	for i := 0; i < len(b) && i <= 6*limit; i++ { // JSON writes a byte with at most six
		switch c := b[i]; {
		case c == '"' && plain && utf8.Valid(b[:i]):
			return string(b[:i]), b[i+1:], nil
		case c == '"':
			return unquote(b[:i], b[i+1:], field)
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			return "", nil, errHead(field)
		}
	}
	return "", nil, errHead(field)
}

// unquote reads the inside of a JSON string that has escapes.
func unquote(inside, rest []byte, field string) (string, []byte, error) {
	quoted := append(append([]byte{'"'}, inside...), '"')
	var s string
	if !utf8.Valid(inside) || json.Unmarshal(quoted, &s) != nil {
		return "", nil, errHead(field)
	}
	return s, rest, nil
}

// checkKey is what an envelope demands of its key.
func checkKey(keyspace, key string) error {
	if !isKeyspace(keyspace) {
		return &EnvelopeError{Field: "keyspace", Reason: fmt.Sprintf("%q is not shaped as [a-z][a-z0-9_]{0,62}", clip(keyspace))}
	}
	reason := ""
	switch {
	case key == "":
		reason = "it is empty"
	case key == "0":
		reason = "it is zero"
	case len(key) > MaxKeyLen:
		reason = fmt.Sprintf("it is longer than %d bytes", MaxKeyLen)
	case !utf8.ValidString(key):
		reason = "it is not UTF-8"
	default:
		return nil
	}
	return &EnvelopeError{Field: "key", Reason: reason}
}

func isKeyspace(s string) bool {
	for i := range len(s) {
		c := s[i]
		if ('a' > c || c > 'z') && (i == 0 || c != '_' && ('0' > c || c > '9')) {
			return false
		}
	}
	return s != "" && len(s) <= maxKeyspaceLen
}
