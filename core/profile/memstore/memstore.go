// Package memstore is a [profile.Store] in memory: the twin of the browser's
// store for tests, with the same behaviour, which the suite in storetest shows
// on both.
package memstore

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/stackglass/stackglass/core/profile"
)

// Store keeps everything in a map. The zero value is empty, unlimited and
// ready. Its methods may be called from several goroutines.
type Store struct {
	// Quota is the most bytes of data that all entries may have together; 0: no
	// limit. A Put beyond it fails with profile.ErrFull.
	Quota uint64

	mu   sync.Mutex
	kept map[string]item
}

type item struct {
	entry profile.Entry
	data  []byte
}

// fullError is profile.ErrFull with the numbers.
type fullError struct{ need, room uint64 }

func (e *fullError) Error() string {
	return profile.ErrFull.Error() + ": " + strconv.FormatUint(e.need, 10) + " bytes do not fit into " +
		strconv.FormatUint(e.room, 10)
}

func (e *fullError) Unwrap() error { return profile.ErrFull }

// Put implements [profile.Store].
func (s *Store) Put(e profile.Entry, data []byte) error {
	if e.Key == "" {
		return errors.New("an entry needs a key")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.kept[e.Key]; ok && e.State == profile.EntryInterrupted && old.entry.State != profile.EntryInterrupted {
		return profile.ErrFinished
	}
	if s.Quota > 0 {
		used := s.used() - uint64(len(s.kept[e.Key].data))
		if room := s.Quota - min(used, s.Quota); uint64(len(data)) > room {
			return &fullError{need: uint64(len(data)), room: room}
		}
	}
	if s.kept == nil {
		s.kept = map[string]item{}
	}
	s.kept[e.Key] = item{e, slices.Clone(data)}
	return nil
}

// Get implements [profile.Store].
func (s *Store) Get(key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok := s.kept[key]
	if !ok {
		return nil, profile.ErrNotFound
	}
	return slices.Clone(kept.data), nil
}

// List implements [profile.Store].
func (s *Store) List() ([]profile.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []profile.Entry
	for _, kept := range s.kept {
		entries = append(entries, kept.entry)
	}
	slices.SortFunc(entries, func(a, b profile.Entry) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.Key, b.Key))
	})
	return entries, nil
}

// Rename implements [profile.Store].
func (s *Store) Rename(key, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok := s.kept[key]
	if !ok {
		return profile.ErrNotFound
	}
	kept.entry.Name = name
	s.kept[key] = kept
	return nil
}

// Delete implements [profile.Store]. Deleting what is not there is no error.
func (s *Store) Delete(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, key)
	return nil
}

// Usage implements [profile.Store].
func (s *Store) Usage() (used, quota uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used(), s.Quota, nil
}

func (s *Store) used() uint64 {
	var n uint64
	for _, kept := range s.kept {
		n += uint64(len(kept.data))
	}
	return n
}
