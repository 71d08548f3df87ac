package dal

import "context"

// NextID makes a row id, as Create does for a row without one.
func (s *Store) NextID(ctx context.Context) (int64, error) { return s.ids.next(ctx) }
