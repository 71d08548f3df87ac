package tenant

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

const (
	maxSchemaLen = 63 // PostgreSQL's limit in bytes; MySQL and MariaDB allow 64 characters
	maxShardLen  = 64
	hashLen      = 40 // hexadecimal digits: 160 bits of SHA-256
)

// SchemaName returns the name of the schema that an OwnSchema tenant gets: "t_" + id where that has at most 63 bytes,
// else "t_", the first 20 bytes of id, "$" and 40 hexadecimal digits of the SHA-256 of id, which are 63 bytes.
//
// Two ids never share a schema: an ID has no "$", so the two forms never meet; the first is the id itself; two ids in
// the second form would need a collision in 160 bits of SHA-256. ([NewStatic] refuses two tenants with one schema in any
// case.) The name is lower case, begins with "t_" and so is never one that a server reserves (mysql, sys, public, pg_...).
//
// id must be well formed: SchemaName panics with an [*InvalidIDError] otherwise, rather than make an identifier of it.
// Quote the name in SQL as the dialect demands: it may hold "-" and "$".
func SchemaName(id ID) string {
	if err := id.Validate(); err != nil {
		panic(err)
	}
	if name := "t_" + string(id); len(name) <= maxSchemaLen {
		return name
	}
	return "t_" + string(id[:maxSchemaLen-len("t_")-len("$")-hashLen]) + "$" + hashID(id)
}

// ShardName returns the name of the n-th shard of its own that an OwnDatabase tenant gets, counted from 1: "<id>-s<n>"
// where that has at most 64 bytes, else as many bytes of id as fit, ".", 40 hexadecimal digits of the SHA-256 of id, and
// "-s<n>".
//
// The name is a shard id ([A-Za-z0-9._-]{1,64}). Two pairs (id, n) never share one: n is what follows the last "-s"; an
// ID has no ".", so the two forms never meet; two ids in the second form would need a collision in 160 bits of SHA-256.
//
// id must be well formed and n at least 1: ShardName panics otherwise.
func ShardName(id ID, n int) string {
	if err := id.Validate(); err != nil {
		panic(err)
	}
	if n < 1 {
		panic(fmt.Sprintf("tenant: ShardName: shards are counted from 1, got %d", n))
	}
	suffix := "-s" + strconv.Itoa(n)
	if name := string(id) + suffix; len(name) <= maxShardLen {
		return name
	}
	keep := min(len(id), maxShardLen-len(".")-hashLen-len(suffix))
	return string(id[:keep]) + "." + hashID(id) + suffix
}

func hashID(id ID) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:hashLen]
}

// reservedSchemas are names that a server uses itself, on MySQL, MariaDB, PostgreSQL or SQLite.
var reservedSchemas = map[string]bool{
	"mysql": true, "sys": true, "information_schema": true, "performance_schema": true, "test": true, "ndbinfo": true,
	"public": true, "postgres": true, "template0": true, "template1": true, "main": true, "temp": true,
	"tdal_control": true,
}

// checkSchema refuses a schema name that was set by hand and is not a plain identifier: [a-z_][a-z0-9_$-]{0,62}, not
// reserved. Lower case only, since servers with lower_case_table_names and most file systems fold case.
func checkSchema(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("tenant: Placement.Schema is empty: the schema model needs one; tenant.Place fills it in")
	case len(s) > maxSchemaLen:
		return fmt.Errorf("tenant: Placement.Schema %q is longer than %d bytes", clip(s), maxSchemaLen)
	case reservedSchemas[s] || strings.HasPrefix(s, "pg_") || strings.HasPrefix(s, "sqlite_"):
		return fmt.Errorf("tenant: Placement.Schema %q is reserved by a database server: choose another", s)
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || c == '_' || i > 0 && ('0' <= c && c <= '9' || c == '$' || c == '-')) {
			return fmt.Errorf("tenant: Placement.Schema %q: byte %d (0x%02x) is not allowed: want [a-z_][a-z0-9_$-]{0,62}", s, i, c)
		}
	}
	return nil
}
