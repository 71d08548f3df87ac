package tenant

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"unicode/utf8"
)

// The versions of the encoded form. A reader refuses any other. An envelope with a shard key has a version of its own, so that a reader which does not know
// such keys says so; one without a key stays byte for byte as it was.
const (
	envelopeVersion      = 1
	envelopeKeyedVersion = 2
)

// Envelope is a job for the background together with the tenant it is for. It cannot be built without a tenant, and a
// worker gets its context from it, so that no job runs for nobody or as the tenant of the job before it.
//
// An Envelope is immutable and safe for concurrent use, except for UnmarshalJSON. The zero value has no tenant, and
// every method that would use it returns [ErrNoTenant].
type Envelope struct {
	tenant   ID
	keyspace string // "" without a key
	key      string
	kind     string
	payload  []byte
	meta     map[string]string
}

// NewEnvelope returns an envelope for the tenant of ctx. kind names the job's type and is not empty; payload is the job
// as opaque bytes, nil and empty being the same; meta is for what travels beside it, such as a trace. Both are copied.
//
// Where ctx has no tenant it returns the error of [FromContext]. A kind or meta that is not UTF-8, or an empty kind, is
// an [*EnvelopeError]; meta that names another tenant under [CarrierKey] is a [*CarrierConflictError].
func NewEnvelope(ctx context.Context, kind string, payload []byte, meta map[string]string) (Envelope, error) {
	id, err := FromContext(ctx)
	if err != nil {
		return Envelope{}, err
	}
	e := Envelope{tenant: id, kind: kind, payload: bytes.Clone(payload), meta: maps.Clone(meta)}
	if err := e.check(); err != nil {
		return Envelope{}, err
	}
	return e, nil
}

// Tenant returns the tenant of the job, "" for the zero Envelope.
func (e Envelope) Tenant() ID { return e.tenant }

// WithKey returns a copy of e that names the shard key which the job is about, for a gateway that directs it by [Peek]. key is the key's canonical text,
// as dal.KeyRef has it: an integer is its decimal text.
//
// It is a copy of the head: what e holds is shared and never changes. A keyspace not shaped as [a-z][a-z0-9_]{0,62}, and a key that is empty, "0", longer
// than [MaxKeyLen] bytes or not UTF-8, are an [*EnvelopeError]; the zero Envelope is [ErrNoTenant].
func (e Envelope) WithKey(keyspace, key string) (Envelope, error) {
	if e.tenant == "" {
		return Envelope{}, ErrNoTenant
	}
	if err := checkKey(keyspace, key); err != nil {
		return Envelope{}, err
	}
	e.keyspace, e.key = keyspace, key
	return e, nil
}

// Head returns what [Peek] reads from the encoded form.
func (e Envelope) Head() Head { return Head{Tenant: e.tenant, Keyspace: e.keyspace, Key: e.key} }

// Kind returns the type of the job.
func (e Envelope) Kind() string { return e.kind }

// Payload returns a copy of the job's bytes, nil when there are none.
func (e Envelope) Payload() []byte { return bytes.Clone(e.payload) }

// Meta returns a copy of what travels beside the job, nil when there is nothing.
func (e Envelope) Meta() map[string]string { return maps.Clone(e.meta) }

// Context returns a context of exactly this tenant: it replaces the tenant, the system scope and the shard that parent
// had from whatever ran before. Deadline, cancellation and other values of parent stay.
//
// The zero Envelope is [ErrNoTenant], and the context beside the error has no tenant, whatever parent was bound to. An
// envelope is taken at its word: where it comes from somebody who may only act for one tenant, compare
// [Envelope.Tenant] with what was proved.
func (e Envelope) Context(parent context.Context) (context.Context, error) {
	if e.tenant == "" {
		return noTenant(parent, ErrNoTenant), ErrNoTenant
	}
	return NewContext(parent, e.tenant), nil
}

// check is what the builder and the decoder both demand of an envelope.
func (e *Envelope) check() error {
	if e.tenant == "" {
		return ErrNoTenant
	}
	if err := e.tenant.Validate(); err != nil {
		return err
	}
	switch {
	case e.kind == "":
		return &EnvelopeError{Field: "kind", Reason: "it is empty"}
	case !utf8.ValidString(e.kind):
		return &EnvelopeError{Field: "kind", Reason: "it is not UTF-8"}
	}
	for k, v := range e.meta {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return &EnvelopeError{Field: "meta", Reason: "it is not UTF-8"}
		}
	}
	key, value, found, err := carried(e.meta)
	if err == nil && found && value != string(e.tenant) {
		err = &CarrierConflictError{Key: clip(key), Carrier: clip(value), Want: string(e.tenant)}
	}
	if err != nil {
		return err
	}
	if len(e.payload) == 0 {
		e.payload = nil
	}
	if len(e.meta) == 0 {
		e.meta = nil
	}
	return nil
}

// MarshalJSON returns the encoded form: {"tenant":..,"v":1,"kind":..,"payload":base64,"meta":{..}}, the tenant always
// first, so that [PeekTenant] finds it in the head. With a key it is {"tenant":..,"keyspace":..,"key":..,"v":2,..}, for [Peek]. The zero Envelope is
// [ErrNoTenant].
func (e Envelope) MarshalJSON() ([]byte, error) {
	if e.tenant == "" {
		return nil, ErrNoTenant
	}
	version := envelopeVersion
	if e.keyspace != "" {
		version = envelopeKeyedVersion
	}
	return json.Marshal(struct {
		Tenant   ID                `json:"tenant"`
		Keyspace string            `json:"keyspace,omitempty"`
		Key      string            `json:"key,omitempty"`
		Version  int               `json:"v"`
		Kind     string            `json:"kind"`
		Payload  []byte            `json:"payload,omitempty"`
		Meta     map[string]string `json:"meta,omitempty"`
	}{e.tenant, e.keyspace, e.key, version, e.kind, e.payload, e.meta})
}

// UnmarshalJSON reads the encoded form, strictly, as [DecodeEnvelope] does. On an error e becomes the zero Envelope: a
// variable used for job after job keeps nothing of the one before.
func (e *Envelope) UnmarshalJSON(b []byte) error {
	v, err := DecodeEnvelope(b)
	*e = v
	return err
}

// DecodeEnvelope reads one encoded envelope and nothing beside it. Prefer it to json.Unmarshal, which refuses broken
// JSON before it reaches the Envelope and so leaves a reused variable as it was.
//
// It is strict. An absent or empty tenant is [ErrNoTenant], an ill-formed one an [*InvalidIDError]. An unknown version,
// an unknown, doubled or differently cased field, an empty kind, broken JSON, text that is not UTF-8 and trailing bytes
// are an [*EnvelopeError]. The fields may come in any order, since a JSON column may sort them.
func DecodeEnvelope(b []byte) (Envelope, error) {
	var e Envelope
	if err := e.decode(b); err != nil {
		return Envelope{}, err
	}
	return e, nil
}

func (e *Envelope) decode(b []byte) error {
	// encoding/json would replace ill-formed UTF-8 instead of refusing it.
	if !utf8.Valid(b) {
		return &EnvelopeError{Reason: "it is not UTF-8"}
	}
	// Field by field rather than into a struct: encoding/json matches names without regard to case and lets the last
	// of two equal names win, so that two readers could see two tenants.
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := delim(dec, '{'); err != nil {
		return err
	}
	var version int
	seen := make(map[string]bool)
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return &EnvelopeError{Reason: "broken JSON", Err: err}
		}
		name, _ := tok.(string) // the decoder lets only strings stand here
		if seen[name] {
			return &EnvelopeError{Reason: fmt.Sprintf("the field %q comes twice", clip(name))}
		}
		seen[name] = true
		switch name {
		case "tenant":
			var id string
			id, err = text(dec)
			e.tenant = ID(id)
		case "keyspace":
			e.keyspace, err = text(dec)
		case "key":
			e.key, err = text(dec)
		case "v":
			err = dec.Decode(&version)
		case "kind":
			e.kind, err = text(dec)
		case "payload":
			e.payload, err = decodePayload(dec)
		case "meta":
			e.meta, err = decodeMeta(dec)
		default:
			return &EnvelopeError{Reason: fmt.Sprintf("unknown field %q", clip(name))}
		}
		if err != nil {
			return &EnvelopeError{Field: name, Reason: "it has the wrong form"}
		}
	}
	if err := delim(dec, '}'); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return &EnvelopeError{Reason: "there are bytes after it"}
	}
	if e.tenant == "" {
		return ErrNoTenant
	}
	switch keyed := seen["keyspace"] || seen["key"]; {
	case version != envelopeVersion && version != envelopeKeyedVersion:
		return &EnvelopeError{Field: "v", Reason: fmt.Sprintf("it is %d, and only versions %d and %d are known", version, envelopeVersion, envelopeKeyedVersion)}
	case keyed != (version == envelopeKeyedVersion):
		return &EnvelopeError{Field: "v", Reason: fmt.Sprintf("it is %d: version %d has keyspace and key, and no other has", version, envelopeKeyedVersion)}
	case keyed:
		if err := checkKey(e.keyspace, e.key); err != nil {
			return err
		}
	}
	return e.check()
}

// errForm says that a field is not of its type. It never leaves this file.
var errForm = errors.New("wrong form")

// text reads a string and nothing else: null is not the empty string.
func text(dec *json.Decoder) (string, error) {
	tok, err := dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", errForm
	}
	return s, nil
}

// decodePayload reads standard base64 with padding. encoding/json would also take line breaks and arrays of numbers.
func decodePayload(dec *json.Decoder) ([]byte, error) {
	s, err := text(dec)
	if err != nil || strings.ContainsAny(s, "\r\n") {
		return nil, errForm
	}
	return base64.StdEncoding.Strict().DecodeString(s)
}

// decodeMeta reads an object of strings, in which no name comes twice: two readers could see two values.
func decodeMeta(dec *json.Decoder) (map[string]string, error) {
	if err := delim(dec, '{'); err != nil {
		return nil, err
	}
	meta := make(map[string]string)
	for dec.More() {
		key, err := text(dec)
		if err != nil {
			return nil, err
		}
		value, err := text(dec)
		if _, dup := meta[key]; dup || err != nil {
			return nil, errForm
		}
		meta[key] = value
	}
	return meta, delim(dec, '}')
}

// delim reads one token, which must be the delimiter.
func delim(dec *json.Decoder, want json.Delim) error {
	tok, err := dec.Token()
	switch {
	case err != nil:
		return &EnvelopeError{Reason: "broken JSON", Err: err}
	case tok != want:
		return &EnvelopeError{Reason: fmt.Sprintf("it is not a JSON object (%q wanted)", want.String())}
	}
	return nil
}
