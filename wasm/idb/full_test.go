//go:build js && wasm

package idb

import (
	"testing"

	"github.com/stackglass/stackglass/core/profile/memstore/storetest"
)

// This test comes first (files are in order of their names): Chromium asks for
// the room that is left only every half a minute, and would let a later limit
// go unnoticed.
func TestFull(t *testing.T) {
	setQuota(t, 24<<20)
	defer setQuota(t, 0)
	storetest.TestFull(t, openNew(t))
}
