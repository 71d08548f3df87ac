package cache

import "errors"

// The states that callers test with errors.Is; both may be wrapped.
var (
	// ErrModel means that a model cannot be cached: it is not a struct that gorm maps, or its primary key beside tenant_id is not one column of the id's type.
	ErrModel = errors.New("cache: the model cannot be cached")

	// ErrLoadPanicked means that a hook of the model panicked while its row was loaded. The panic does not go on: others wait for the row as well.
	ErrLoadPanicked = errors.New("cache: a load panicked")
)
