package storetest

import (
	"errors"
	"io"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

// TestCheckpoints runs the test suite for a checkpoint store. The function "open" returns an empty
// store, and a function that damages the newest undamaged generation of the checkpoint under a key.
func TestCheckpoints(t *testing.T, open func(t *testing.T) (s profile.Checkpoints, damage func(key string))) {
	t.Run("sizes", func(t *testing.T) {
		s, _ := open(t)
		for i, size := range sizes {
			save(t, s, "k", pattern(size, byte(i)))
			wantData(t, s, "k", pattern(size, byte(i)))
		}
	})
	t.Run("two generations", func(t *testing.T) {
		s, damage := open(t)
		for i := range byte(5) {
			save(t, s, "k", pattern(5<<20, i))
		}
		damage("k")
		wantData(t, s, "k", pattern(5<<20, 3))
		damage("k")
		if _, err := s.Get("k"); !errors.Is(err, profile.ErrDamaged) {
			t.Errorf("Get with two damaged generations = %v, want %v", err, profile.ErrDamaged)
		}
		save(t, s, "k", pattern(10, 5))
		wantData(t, s, "k", pattern(10, 5))
	})
	t.Run("failing writes", func(t *testing.T) {
		s, _ := open(t)
		save(t, s, "k", pattern(5<<20, 1))
		wrong := errors.New("write failed")
		err := s.Save(profile.Entry{Key: "k"}, func(w io.Writer) error {
			_, err := w.Write(pattern(9<<20, 2))
			return errors.Join(err, wrong)
		})
		if !errors.Is(err, wrong) {
			t.Errorf("Save: %v, want %v", err, wrong)
		}
		wantData(t, s, "k", pattern(5<<20, 1))
	})
	t.Run("several runs", func(t *testing.T) {
		s, damage := open(t)
		for i := range byte(3) {
			save(t, s, "a", pattern(1000, i))
			save(t, s, "ab", pattern(2000, i))
		}
		damage("a")
		wantData(t, s, "a", pattern(1000, 1))
		wantData(t, s, "ab", pattern(2000, 2))
		if err := s.Delete("a"); err != nil {
			t.Error(err)
		}
		if _, err := s.Get("a"); !errors.Is(err, profile.ErrNotFound) {
			t.Errorf("Get: %v, want %v", err, profile.ErrNotFound)
		}
		wantData(t, s, "ab", pattern(2000, 2))
		if err := s.Delete("a"); err != nil {
			t.Error(err)
		}
	})
	t.Run("no key", func(t *testing.T) {
		s, _ := open(t)
		if err := s.Save(profile.Entry{}, writeInParts([]byte("data"))); err == nil {
			t.Error("Save accepted a checkpoint without a key, want an error")
		}
	})
}
