// Package folder implements [profile.Checkpoints] for the command, and stores the checkpoints of
// analyses in a folder.
//
// A generation is one saved state of an analysis, in a file KEY-NUMBER.checkpoint. The file
// contains the data and 24 additional bytes:
//
//	magic  8 bytes  "sgckpt1\n"
//	bytes  8 bytes little-endian: length of the data
//	sum    8 bytes little-endian: XXH64 of the data
//
// A new generation is first written to KEY.part. Once this file is flushed to the disk, it is
// renamed, and all generations except the two newest are removed. Therefore, at least one of the
// two newest generations is complete whenever the program or the machine stops. The process that
// runs the analysis locks the file KEY.lock.
package folder

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/tools/stackglass/internal/system"
)

const (
	magic        = "sgckpt1\n"
	trailerBytes = 24
	ending       = ".checkpoint"
)

// Folder is an open folder of checkpoints.
type Folder struct{ dir string }

// Open opens the folder, and creates it if it does not exist.
func Open(dir string) (*Folder, error) {
	return &Folder{dir: dir}, os.MkdirAll(dir, 0o777)
}

// ErrOwned means that another process runs the same analysis.
var ErrOwned = errors.New("another run of the same analysis stores its checkpoints in this folder; wait until that run ends, or stop it")

// Own gives this process the exclusive right to run an analysis, until the process calls the
// function "release" or ends. Own also removes an unfinished file of an earlier process. The error
// is [ErrOwned] or an error of the operating system.
func (f *Folder) Own(key string) (release func(), err error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	path := filepath.Join(f.dir, key+".lock")
	for {
		lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return nil, err
		}
		if err := system.TryLock(lock); err != nil {
			lock.Close()
			if err == system.ErrLocked {
				err = ErrOwned
			}
			return nil, err
		}
		if stillThere(path, lock) {
			_ = os.Remove(f.part(key)) // if the file cannot be removed, writing it will fail, too
			return func() { system.RemoveLocked(lock) }, nil
		}
		lock.Close() // the owner of the lock has just removed the file
	}
}

func stillThere(path string, lock *os.File) bool {
	named, err := os.Stat(path)
	open, openErr := lock.Stat()
	return err == nil && openErr == nil && os.SameFile(named, open)
}

// Save implements [profile.Checkpoints]. Only the key of the entry is stored, as part of the file
// name.
func (f *Folder) Save(e profile.Entry, write func(io.Writer) error) error {
	if err := checkKey(e.Key); err != nil {
		return err
	}
	numbers, err := f.generations(e.Key)
	if err != nil {
		return err
	}
	err = f.writePart(e.Key, write)
	if system.IsFull(err) && len(numbers) > 1 {
		if err := f.drop(e.Key, numbers[1:]); err != nil {
			return err
		}
		numbers = numbers[:1]
		err = f.writePart(e.Key, write)
	}
	if system.IsFull(err) {
		return errors.Join(profile.ErrFull, err)
	}
	if err != nil {
		return err
	}
	next := uint64(1)
	if len(numbers) > 0 {
		next = numbers[0] + 1
	}
	if err := os.Rename(f.part(e.Key), f.file(e.Key, next)); err != nil {
		return err
	}
	if err := f.syncFolder(); err != nil {
		return err
	}
	return f.drop(e.Key, numbers[min(len(numbers), 1):])
}

// writePart writes the file KEY.part, and removes it if an error occurs.
func (f *Folder) writePart(key string, write func(io.Writer) error) error {
	file, err := os.OpenFile(f.part(key), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	pieces := profile.NewPieces(func(_ int, piece []byte) error {
		_, err := file.Write(piece)
		return err
	})
	err = write(pieces)
	if err == nil {
		var sum profile.Sum
		if sum, err = pieces.Close(); err == nil {
			_, err = file.Write(trailer(sum))
		}
	}
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(f.part(key))
	}
	return err
}

func trailer(sum profile.Sum) []byte {
	b := append(make([]byte, 0, trailerBytes), magic...)
	b = binary.LittleEndian.AppendUint64(b, sum.Bytes)
	return binary.LittleEndian.AppendUint64(b, sum.XXH64)
}

// Get implements [profile.Checkpoints].
func (f *Folder) Get(key string) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	numbers, err := f.generations(key)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return nil, profile.ErrNotFound
	}
	for _, n := range numbers {
		stored, err := os.ReadFile(f.file(key, n))
		if err != nil {
			return nil, err
		}
		at := len(stored) - trailerBytes
		if at >= 0 && string(stored[at:]) == string(trailer(profile.SumOf(stored[:at]))) {
			return stored[:at:at], nil
		}
	}
	return nil, profile.ErrDamaged
}

// Delete implements [profile.Checkpoints].
func (f *Folder) Delete(key string) error {
	numbers, err := f.generations(key)
	if err != nil {
		return err
	}
	return f.drop(key, numbers)
}

func (f *Folder) drop(key string, numbers []uint64) error {
	for _, n := range numbers {
		if err := os.Remove(f.file(key, n)); err != nil {
			return err
		}
	}
	return nil
}

// generations returns the numbers of the stored generations, starting with the newest.
func (f *Folder) generations(key string) (numbers []uint64, err error) {
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), key+"-")
		if digits, whole := strings.CutSuffix(digits, ending); ok && whole {
			if n, err := strconv.ParseUint(digits, 10, 63); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	slices.SortFunc(numbers, func(a, b uint64) int { return cmp.Compare(b, a) })
	return numbers, err
}

func (f *Folder) file(key string, number uint64) string {
	return filepath.Join(f.dir, key+"-"+strconv.FormatUint(number, 10)+ending)
}

func (f *Folder) part(key string) string { return filepath.Join(f.dir, key+".part") }

// syncFolder flushes the folder to the disk if the system supports this.
func (f *Folder) syncFolder() error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return system.SyncNames(dir)
}

// checkKey returns an error if a key cannot be used as a file name.
func checkKey(key string) error {
	if key == "" || strings.ContainsAny(key, "/\\\x00") || key[0] == '.' {
		return errors.New("the key of an entry must be a valid file name")
	}
	return nil
}
