package memstore

import (
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/profile/memstore/storetest"
)

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T) profile.Store { return new(Store) })
}

func TestCheckpoints(t *testing.T) {
	storetest.TestCheckpoints(t, func(t *testing.T) (profile.Checkpoints, func(key string)) {
		s := new(Store)
		return s, func(key string) {
			if !s.Damage(key) {
				t.Error("Damage returns false, want true")
			}
		}
	})
}

func TestFull(t *testing.T) { storetest.TestFull(t, &Store{Quota: 24 << 20}) }
