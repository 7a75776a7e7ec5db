// Package memstore implements a [profile.Store] in memory, for tests. The test suite in package
// storetest checks that this store behaves like the store in the browser.
package memstore

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/stackglass/stackglass/core/profile"
)

// Store keeps all entries in a map. The zero value is an empty store without a size limit. The
// methods of a Store may be called concurrently.
type Store struct {
	// Quota is the maximum total number of bytes of data in all entries; 0 means no limit. A call
	// of Put that would exceed the quota fails with profile.ErrFull.
	Quota uint64

	mu   sync.Mutex
	kept map[string]item
}

type item struct {
	entry     profile.Entry
	data      []byte
	sum       profile.Sum // checksum of data
	before    []byte      // the previous generation of a checkpoint; nil: none
	beforeSum profile.Sum
}

func (i *item) bytes() uint64 { return uint64(len(i.data) + len(i.before)) }

// fullError is a profile.ErrFull that states the number of required bytes and the number of free
// bytes.
type fullError struct{ need, room uint64 }

func (e *fullError) Error() string {
	return profile.ErrFull.Error() + ": " + strconv.FormatUint(e.need, 10) + " bytes do not fit into " +
		strconv.FormatUint(e.room, 10)
}

func (e *fullError) Unwrap() error { return profile.ErrFull }

// Put implements [profile.Store].
func (s *Store) Put(e profile.Entry, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(e, item{entry: e, data: slices.Clone(data), sum: profile.SumOf(data)})
}

func (s *Store) put(e profile.Entry, new item) error {
	if e.Key == "" {
		return errors.New("the entry has no key")
	}
	if s.Quota > 0 {
		old := s.kept[e.Key]
		if room := s.Quota - min(s.used()-old.bytes(), s.Quota); new.bytes() > room {
			return &fullError{need: new.bytes(), room: room}
		}
	}
	if s.kept == nil {
		s.kept = map[string]item{}
	}
	s.kept[e.Key] = new
	return nil
}

// Save implements [profile.Checkpoints].
func (s *Store) Save(e profile.Entry, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.kept[e.Key]
	if ok && old.entry.State != profile.EntryInterrupted {
		return profile.ErrFinished
	}
	sum := profile.SumOf(b.Bytes())
	e.State, e.Bytes = profile.EntryInterrupted, sum.Bytes
	err := s.put(e, item{entry: e, data: b.Bytes(), sum: sum, before: old.data, beforeSum: old.sum})
	if errors.Is(err, profile.ErrFull) {
		err = s.put(e, item{entry: e, data: b.Bytes(), sum: sum})
	}
	return err
}

// Get implements [profile.Checkpoints].
func (s *Store) Get(key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok := s.kept[key]
	switch {
	case !ok:
		return nil, profile.ErrNotFound
	case profile.SumOf(kept.data) == kept.sum:
		return slices.Clone(kept.data), nil
	case kept.before != nil && profile.SumOf(kept.before) == kept.beforeSum:
		return slices.Clone(kept.before), nil
	}
	return nil, profile.ErrDamaged
}

// Damage changes a byte of the newest undamaged generation. Damage returns false if all generations
// are damaged.
func (s *Store) Damage(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.kept[key]
	for _, data := range [][]byte{kept.data, kept.before} {
		if sum := profile.SumOf(data); len(data) > 0 && (sum == kept.sum || sum == kept.beforeSum) {
			data[len(data)/2] ^= 1
			return true
		}
	}
	return false
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

// Delete implements [profile.Checkpoints].
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
		n += kept.bytes()
	}
	return n
}
