package testutil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
)

// clustered is a server that a cluster can hold.
type clustered interface {
	comparable // with the zero value for none
	// Start starts the server if it is down, and returns when it answers.
	Start(ctx context.Context) error
	// discard ends the server at once, with what it left outside its directory.
	discard() error
}

// cluster is a number of servers in one directory, and the process that reaps them when this one dies.
type cluster[S clustered] struct {
	root    string // absolute, without symbolic links, as the servers' command lines have it
	reaper  *reaper
	launch  func(ctx context.Context, dir string) (S, error)
	servers []S
}

// newCluster returns a cluster of no servers in the directory root, which exists and belongs to it.
func newCluster[S clustered](root string, launch func(ctx context.Context, dir string) (S, error)) (*cluster[S], error) {
	resolved, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(root))
	}
	r, err := startReaper(resolved)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the reaper: %w", err), os.RemoveAll(root))
	}
	return &cluster[S]{root: resolved, reaper: r, launch: launch}, nil
}

// grow starts servers until there are n, and those of the first n that are down. When one does not come up, no new one is kept.
func (c *cluster[S]) grow(n int) error {
	ctx := context.Background() // each start has its own limit
	var none S
	servers := slices.Clone(c.servers)
	servers = append(servers, make([]S, max(0, n-len(servers)))...)
	var group errgroup.Group
	for i, s := range servers[:n] {
		group.Go(func() (err error) {
			if s != none {
				return s.Start(ctx)
			}
			servers[i], err = c.launch(ctx, filepath.Join(c.root, strconv.Itoa(i)))
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		c.servers = servers
		return nil
	}
	for _, s := range servers[len(c.servers):] {
		if s != none {
			err = errors.Join(err, s.discard())
		}
	}
	return err
}

// close ends the servers at once, since their data goes with them, then the reaper, and removes the directory.
func (c *cluster[S]) close() error {
	var group errgroup.Group
	for _, s := range c.servers {
		group.Go(s.discard)
	}
	return errors.Join(group.Wait(), c.reaper.dismiss(), os.RemoveAll(c.root))
}

// ownCluster starts n servers for one test, in a directory that root makes. name is the caller's, for messages.
func ownCluster[S clustered](tb TB, name string, n int, root func() (string, error), launch func(ctx context.Context, dir string) (S, error)) []S {
	tb.Helper()
	dir, err := root()
	var c *cluster[S]
	if err == nil {
		c, err = newCluster(dir, launch)
	}
	if err == nil {
		tb.Cleanup(func() {
			if err := c.close(); err != nil {
				tb.Errorf("%s(%d): cleanup: %v", name, n, err)
			}
		})
		err = c.grow(n)
	}
	if err != nil {
		tb.Fatalf("%s(%d): %v", name, n, err)
	}
	return slices.Clone(c.servers)
}

// sharedCluster is what all tests of this process share.
type sharedCluster[S clustered] struct {
	mu sync.Mutex // guards of and is held over the start, so that one caller starts it and the others wait
	of *cluster[S]
}

// take returns the first n servers, and starts what is missing or down.
func (s *sharedCluster[S]) take(tb TB, name string, n int, root func() (string, error), launch func(ctx context.Context, dir string) (S, error)) []S {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := error(nil)
	if s.of == nil {
		var dir string
		if dir, err = root(); err == nil {
			s.of, err = newCluster(dir, launch)
		}
	}
	if err == nil {
		err = s.of.grow(n)
	}
	if err != nil {
		tb.Fatalf("%s(%d): %v", name, n, err)
	}
	return slices.Clone(s.of.servers[:n])
}

// stop ends the servers; take starts new ones.
func (s *sharedCluster[S]) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		return nil
	}
	c := s.of
	s.of = nil
	return c.close()
}
