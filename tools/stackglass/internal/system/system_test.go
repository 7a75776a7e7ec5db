package system

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestAddressInUse(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := net.Listen("tcp", first.Addr().String())
	if err == nil {
		second.Close()
		t.Fatal("two programs listen on one address")
	}
	if !IsAddressInUse(err) || IsFull(err) {
		t.Errorf("%v is not recognised", err)
	}
}

func TestFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("skipped: this system has no device that is always full:", err)
	}
	defer full.Close()
	if _, err := full.Write([]byte("x")); !IsFull(err) || IsAddressInUse(err) {
		t.Errorf("%v is not recognised", err)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	if err := TryLock(first); err != nil {
		t.Fatal(err)
	}
	if err := TryLock(second); err != ErrLocked {
		t.Errorf("a second lock: %v, want %v", err, ErrLocked)
	}
	second.Close()
	RemoveLocked(first)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file was not removed: %v", err)
	}
}
