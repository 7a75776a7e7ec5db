package memstore

import (
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/profile/memstore/storetest"
)

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T) profile.Store { return new(Store) })
}

func TestFull(t *testing.T) { storetest.TestFull(t, &Store{Quota: 24 << 20}) }
