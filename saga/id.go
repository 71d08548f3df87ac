package saga

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/tenantdal/tenantdal/tenant"
)

// ID names a donation within its tenant. It is derived from the tenant, the player and the caller's key, and from nothing else: the same three give
// the same ID in every process, however often a call is tried again.
type ID [16]byte

// DeriveID returns the ID of the donation that the tenant's player started under key. It performs no I/O.
//
// It is the first half of SHA-256 over the length-prefixed parts; changing it would make old donations unknown, so golden values guard it.
func DeriveID(id tenant.ID, player, key string) ID {
	return digest("tenantdal donation id/1", string(id), player, key)
}

// ParseID returns the ID that [ID.String] printed.
func ParseID(s string) (ID, error) {
	var id ID
	if n, err := hex.Decode(id[:], []byte(s[:min(len(s), 32)])); err != nil || n != len(id) || len(s) != 32 {
		return ID{}, fmt.Errorf("saga: %d characters are no donation id: want 32 hexadecimal digits", len(s))
	}
	return id, nil
}

// String returns the ID as 32 lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Value returns the 16 bytes, for the database.
func (id ID) Value() (driver.Value, error) { return append([]byte(nil), id[:]...), nil }

// Scan reads 16 bytes from the database.
func (id *ID) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok || len(b) != len(id) {
		return fmt.Errorf("saga: a %T of the database is no donation id", src)
	}
	copy(id[:], b)
	return nil
}

// GormDataType tells gorm that an ID is bytes.
func (ID) GormDataType() string { return "bytes" }

// bodyHash is what makes two donations under one key the same donation: guild, item and quantity.
func bodyHash(guild, item string, qty int64) ID {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(qty))
	return digest("tenantdal donation body/1", guild, item, string(n[:]))
}

// looseHash is a body hash as the database holds it. One of another length, which only tampering leaves, is no hash of anything and no error either: it
// is one row's fault, and reading it must not fail its neighbours.
type looseHash ID

// Scan reads the bytes.
func (h *looseHash) Scan(src any) error {
	b, _ := src.([]byte)
	if len(b) != len(h) {
		b = nil
	}
	*h = looseHash{}
	copy(h[:], b)
	return nil
}

// digest hashes the parts, each after its length, so that no two lists of parts give the same bytes.
func digest(parts ...string) ID {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		_, _ = h.Write(n[:])
		_, _ = h.Write([]byte(p))
	}
	var id ID
	copy(id[:], h.Sum(nil))
	return id
}
