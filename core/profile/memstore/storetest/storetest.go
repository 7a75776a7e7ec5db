// Package storetest is a test suite for implementations of profile.Store.
package storetest

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

// TestStore runs the test suite for a store, except for [TestFull]. The function "open" returns an
// empty store.
func TestStore(t *testing.T, open func(t *testing.T) profile.Store) {
	tests := map[string]func(*testing.T, profile.Store){
		"empty":                 testEmpty,
		"put and get":           testPutGet,
		"put replaces":          testReplace,
		"list newest first":     testList,
		"rename":                testRename,
		"delete":                testDelete,
		"keys are distinct":     testKeys,
		"usage grows":           testUsage,
		"concurrent calls":      testParallel,
		"data is copied":        testCopy,
		"an entry needs a key":  testNoKey,
		"every field of Entry":  testEntry,
		"rename keeps the data": testRenameKeepsData,
		"finished":              testFinished,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func testEmpty(t *testing.T, s profile.Store) {
	if entries, err := s.List(); err != nil || len(entries) != 0 {
		t.Errorf("List of an empty store = %v, %v, want no entries", entries, err)
	}
	if _, err := s.Get("none"); !errors.Is(err, profile.ErrNotFound) {
		t.Errorf("Get: %v, want %v", err, profile.ErrNotFound)
	}
	if err := s.Rename("none", "name"); !errors.Is(err, profile.ErrNotFound) {
		t.Errorf("Rename: %v, want %v", err, profile.ErrNotFound)
	}
	if err := s.Delete("none"); err != nil {
		t.Errorf("Delete: %v", err)
	}
}

// sizes contains lengths of data that are close to the sizes of the pieces into which a store may
// divide data.
var sizes = []int{0, 1, 1000, 1<<20 - 1, 1 << 20, 1<<20 + 1, 4<<20 - 1, 4 << 20, 4<<20 + 1, 9 << 20}

func pattern(size int, seed byte) []byte {
	data := make([]byte, size)
	x := uint32(seed) + 1
	for i := range data {
		x = x*1664525 + 1013904223
		data[i] = byte(x >> 24)
	}
	return data
}

func put(t *testing.T, s profile.Store, e profile.Entry, data []byte) {
	t.Helper()
	if err := s.Put(e, data); err != nil {
		t.Fatal(err)
	}
}

func save(t *testing.T, s profile.Checkpoints, key string, data []byte) {
	t.Helper()
	if err := s.Save(profile.Entry{Key: key}, writeInParts(data)); err != nil {
		t.Fatal(err)
	}
}

// writeInParts returns a function that writes data in a few calls, whose boundaries differ from the
// boundaries of the store's pieces.
func writeInParts(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		for _, part := range [][]byte{data[:len(data)/3], data[len(data)/3 : len(data)/2], data[len(data)/2:]} {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
}

func wantData(t *testing.T, s profile.Checkpoints, key string, want []byte) {
	t.Helper()
	got, err := s.Get(key)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("Get(%q) = %d bytes, %v, want %d bytes; equal: %t", key, len(got), err, len(want), bytes.Equal(got, want))
	}
}

func testPutGet(t *testing.T, s profile.Store) {
	for _, size := range sizes {
		put(t, s, profile.Entry{Key: strconv.Itoa(size)}, pattern(size, 1))
	}
	for _, size := range sizes {
		wantData(t, s, strconv.Itoa(size), pattern(size, 1))
	}
}

func testReplace(t *testing.T, s profile.Store) {
	for i, size := range []int{5 << 20, 10, 9 << 20, 0, 1 << 20} {
		put(t, s, profile.Entry{Key: "k", Created: int64(i)}, pattern(size, byte(i)))
		wantData(t, s, "k", pattern(size, byte(i)))
	}
	if entries, err := s.List(); err != nil || len(entries) != 1 || entries[0].Created != 4 {
		t.Errorf("List: %+v, %v", entries, err)
	}
}

// A checkpoint replaces a checkpoint, and a result replaces a checkpoint or a result. A checkpoint
// does not replace a result.
func testFinished(t *testing.T, s profile.Store) {
	save(t, s, "k", pattern(10, 1))
	save(t, s, "k", pattern(20, 2))
	entries, err := s.List()
	if err != nil || len(entries) != 1 || entries[0].State != profile.EntryInterrupted || entries[0].Bytes != 20 {
		t.Errorf("List: %+v, %v", entries, err)
	}
	for _, finished := range []profile.EntryState{profile.EntryPartial, profile.EntryComplete} {
		put(t, s, profile.Entry{Key: "k", State: finished}, pattern(30, 3))
		if err := s.Save(profile.Entry{Key: "k"}, writeInParts(pattern(40, 4))); !errors.Is(err, profile.ErrFinished) {
			t.Errorf("Save of a checkpoint over a %s analysis = %v, want ErrFinished", finished, err)
		}
		wantData(t, s, "k", pattern(30, 3))
	}
}

func testList(t *testing.T, s profile.Store) {
	for _, created := range []int64{3, 1, 4, 1, 5} {
		put(t, s, profile.Entry{Key: strconv.FormatInt(created, 10), Created: created}, nil)
	}
	entries, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, e := range entries {
		got = append(got, e.Created)
	}
	if !reflect.DeepEqual(got, []int64{5, 4, 3, 1}) {
		t.Errorf("List returns entries created at %v, want the newest first", got)
	}
}

func testRename(t *testing.T, s profile.Store) {
	put(t, s, profile.Entry{Key: "k", Name: "old", Digest: "d"}, []byte("data"))
	if err := s.Rename("k", "ünïcode \U0001f600 \"name\""); err != nil {
		t.Fatal(err)
	}
	entries, err := s.List()
	if err != nil || len(entries) != 1 || entries[0].Name != "ünïcode \U0001f600 \"name\"" || entries[0].Digest != "d" {
		t.Errorf("List: %+v, %v", entries, err)
	}
}

func testRenameKeepsData(t *testing.T, s profile.Store) {
	data := pattern(5<<20, 3)
	put(t, s, profile.Entry{Key: "k"}, data)
	if err := s.Rename("k", "new"); err != nil {
		t.Fatal(err)
	}
	wantData(t, s, "k", data)
}

func testDelete(t *testing.T, s profile.Store) {
	put(t, s, profile.Entry{Key: "a"}, pattern(5<<20, 1))
	put(t, s, profile.Entry{Key: "b"}, pattern(5<<20, 2))
	if err := s.Delete("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("a"); !errors.Is(err, profile.ErrNotFound) {
		t.Errorf("Get: %v, want %v", err, profile.ErrNotFound)
	}
	wantData(t, s, "b", pattern(5<<20, 2))
	if entries, err := s.List(); err != nil || len(entries) != 1 || entries[0].Key != "b" {
		t.Errorf("List: %+v, %v", entries, err)
	}
}

// testKeys checks that the store does not confuse similar keys. For example, a store that finds
// chunks by ranges of keys might confuse a key with a prefix of the key.
func testKeys(t *testing.T, s profile.Store) {
	keys := []string{"a", "a/0", "a,0", "a\x00", "aa", "A", "ä", " ", "0", "1", "true"}
	for i, key := range keys {
		put(t, s, profile.Entry{Key: key}, pattern(2<<20, byte(i)))
	}
	for i, key := range keys {
		wantData(t, s, key, pattern(2<<20, byte(i)))
	}
	for i, key := range keys {
		if err := s.Delete(key); err != nil {
			t.Fatal(err)
		}
		for j, other := range keys[i+1:] {
			wantData(t, s, other, pattern(2<<20, byte(i+1+j)))
		}
	}
}

func testUsage(t *testing.T, s profile.Store) {
	before, _, err := s.Usage()
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, profile.Entry{Key: "k"}, pattern(8<<20, 1))
	after, _, err := s.Usage()
	if err != nil || after < before+4<<20 {
		t.Errorf("Usage before and after a Put of 8 MiB of incompressible data: %d and %d bytes, error %v", before, after, err)
	}
}

func testParallel(t *testing.T, s profile.Store) {
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			key := strconv.Itoa(i % 4)
			if err := s.Put(profile.Entry{Key: key}, pattern(1<<20+i%4, byte(i%4))); err != nil {
				t.Error(err)
			}
			wantData(t, s, key, pattern(1<<20+i%4, byte(i%4)))
		})
	}
	wait.Wait()
}

func testCopy(t *testing.T, s profile.Store) {
	data := []byte("original")
	put(t, s, profile.Entry{Key: "k"}, data)
	copy(data, "spoiled!")
	got, err := s.Get("k")
	if err != nil || string(got) != "original" {
		t.Fatalf("Get: %q, %v", got, err)
	}
	copy(got, "spoiled!")
	wantData(t, s, "k", []byte("original"))
}

func testNoKey(t *testing.T, s profile.Store) {
	if err := s.Put(profile.Entry{}, []byte("data")); err == nil {
		t.Error("Put accepted an entry without a key, want an error")
	}
	if entries, err := s.List(); err != nil || len(entries) != 0 {
		t.Errorf("List: %+v, %v", entries, err)
	}
}

func testEntry(t *testing.T, s profile.Store) {
	e := profile.Entry{
		Key: "k", Name: "n", Created: 1700000000123, Bytes: 1<<53 - 1, References: 1<<53 - 2, Digest: "00ff",
		State: profile.EntryInterrupted, Reason: "r", Done: 0.625, Outside: 1<<53 - 3,
	}
	for v, i := reflect.ValueOf(e), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("this test does not set %s", v.Type().Field(i).Name)
		}
	}
	put(t, s, e, nil)
	if entries, err := s.List(); err != nil || len(entries) != 1 || entries[0] != e {
		t.Errorf("List: %+v, %v, want %+v", entries, err, e)
	}
}

// TestFull checks that a Put that fails for lack of space changes nothing, not even the old value
// of the key. The store s must be empty, and have room for 16 MiB but not for 64 MiB.
func TestFull(t *testing.T, s profile.Store) {
	old := pattern(5<<20, 9)
	if err := s.Save(profile.Entry{Key: "k", Name: "old"}, writeInParts(old)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k", "other"} {
		if err := s.Save(profile.Entry{Key: key, Name: "new"}, writeInParts(pattern(64<<20, 8))); !errors.Is(err, profile.ErrFull) {
			t.Fatalf("Save of 64 MiB under %q into a full store: %v, want %v", key, err, profile.ErrFull)
		}
		err := s.Put(profile.Entry{Key: key, Name: "new", State: profile.EntryComplete}, pattern(64<<20, 8))
		if !errors.Is(err, profile.ErrFull) {
			t.Fatalf("Put of 64 MiB under %q into a full store: %v, want %v", key, err, profile.ErrFull)
		}
	}
	wantData(t, s, "k", old)
	entries, err := s.List()
	if err != nil || len(entries) != 1 || entries[0].Name != "old" || entries[0].State != profile.EntryInterrupted {
		t.Errorf("List: %+v, %v", entries, err)
	}
	put(t, s, profile.Entry{Key: "k", Name: "new"}, []byte("small"))
	wantData(t, s, "k", []byte("small"))
}
