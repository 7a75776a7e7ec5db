//go:build js && wasm

package idb

import (
	"bytes"
	"errors"
	"io"
	"syscall/js"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/profile/memstore/storetest"
)

// TestFull must run first, because Chromium checks the remaining space only every half minute and
// would not notice a later limit. TestFull runs first, because Go runs the tests in a package in
// the order of their file names.
func TestFull(t *testing.T) {
	setQuota(t, 24<<20)
	defer setQuota(t, 0)
	storetest.TestFull(t, openNew(t))
}

// TestAnyWriteIsRefused checks that, if any write of a checkpoint or a result fails because there
// is no space, the store keeps earlier data and accepts later data.
func TestAnyWriteIsRefused(t *testing.T) {
	stores := js.Global().Get("IDBObjectStore").Get("prototype")
	put := stores.Get("put")
	defer stores.Set("put", put)
	// The replacement must be a JavaScript function, because it throws the exception of a full
	// storage, and a Go function cannot throw exceptions.
	crypto := js.Global().Get("crypto")
	full := crypto.Get("getRandomValues").Call("bind", crypto, js.Global().Get("Uint8Array").New(1<<17))
	calls := 0 // number of calls before the storage is full
	counting := js.FuncOf(func(this js.Value, args []js.Value) any {
		if calls--; calls == 0 {
			stores.Set("put", full)
		}
		about := js.Global().Get("Array").New()
		for _, a := range args {
			about.Call("push", a)
		}
		return put.Call("apply", this, about)
	})
	defer counting.Release()
	s := openNew(t)
	old, later := bytes.Repeat([]byte{5}, 2*chunkBytes+9), bytes.Repeat([]byte{6}, chunkBytes+1)
	save := func(data []byte) error {
		return s.Save(profile.Entry{Key: "k", Name: "n"}, func(w io.Writer) error { _, err := w.Write(data); return err })
	}
	for name, write := range map[string]func(data []byte) error{
		"checkpoint": save,
		"result":     func(data []byte) error { return s.Put(profile.Entry{Key: "k", State: profile.EntryComplete}, data) },
	} {
		refused := 0
		for n := 1; ; n++ {
			if err := s.Delete("k"); err != nil {
				t.Fatal(err)
			}
			if err := save(old); err != nil {
				t.Fatal(err)
			}
			if calls = n - 1; calls == 0 {
				stores.Set("put", full)
			} else {
				stores.Set("put", counting)
			}
			err := write(later)
			stores.Set("put", put)
			if refused++; err == nil {
				break
			} else if !errors.Is(err, profile.ErrFull) {
				t.Errorf("%s: error of the refused write %d = %v, want %v", name, n, err, profile.ErrFull)
			}
			if data, err := s.Get("k"); err != nil || !bytes.Equal(data, old) {
				t.Errorf("%s: after the refused write %d, the entry has %d bytes, want the earlier %d (error %v)", name, n, len(data), len(old), err)
			}
			if err := write(later); err != nil {
				t.Errorf("%s: the write after the refused write %d failed: %v", name, n, err)
			}
		}
		if refused < 3 {
			t.Errorf("%s: writes of the operation = %d, want more", name, refused-1)
		}
	}
}
