package tracetest

import (
	"bytes"
	"embed"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/pierrec/lz4/v4"
)

// TB contains the methods of testing.TB that this package needs, so that benchmarks outside tests
// need not link package testing.
type TB interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

// SmallTraces lists the names that [Small] accepts. There are three lackey traces (one with threads
// and instructions, one with superblocks, one with data references only), a din trace and a CSV
// trace.
var SmallTraces = []string{"threads.lackey", "blocks.lackey", "data.lackey", "small.din", "small.csv"}

//go:embed testdata
var small embed.FS

// Small returns a real trace of a few kilobytes, one of [SmallTraces]. Small panics for any other
// name.
func Small(name string) []byte {
	text, err := small.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	return text
}

// Packed returns a real compressed trace. The trace contains 104,544 data references, which lackey
// recorded from a program that sums an array and then a list. The file is compressed with lz4, in
// blocks without checksums.
func Packed() []byte { return Small("array-list.lackey.lz4") }

// RealTraces lists the names that [RealText] accepts: a dense matrix product, a stencil and a sort.
var RealTraces = []string{"gemm", "jacobi2d", "sort"}

// FindData returns the folder that contains the large traces: $STACKGLASS_DATA or, if this variable
// is not set, ../shared/data relative to the root of the repository. The error explains how to set
// $STACKGLASS_DATA.
func FindData() (dir string, err error) {
	if dir = os.Getenv("STACKGLASS_DATA"); dir == "" {
		root, err := repository()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "traces")); err != nil {
		return "", errors.New("no traces in " + dir + ": set STACKGLASS_DATA to the folder that contains traces/")
	}
	return dir, nil
}

// DataDir returns the folder that [FindData] finds. If there is no such folder, DataDir skips the
// test.
func DataDir(t TB) string {
	t.Helper()
	dir, err := FindData()
	if err != nil {
		t.Skip("skipped: " + err.Error())
	}
	return dir
}

// RealPath returns the path of the compressed file of one of [RealTraces]. If the file is missing,
// RealPath skips the test.
func RealPath(t TB, name string) string {
	t.Helper()
	return filepath.Join(DataDir(t), "traces", name+".lackey.lz4")
}

// RealText returns the first lines of one of [RealTraces], up to the given number of bytes.
func RealText(t TB, name string, most int64) []byte {
	t.Helper()
	f, err := os.Open(RealPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(lz4.NewReader(f), most))
	if err != nil {
		t.Fatal(err)
	}
	return text[:bytes.LastIndexByte(text, '\n')+1]
}

// repository returns the nearest folder above the working directory that contains a go.mod.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("there is no go.mod above the working directory: set STACKGLASS_DATA to the folder of the traces")
		}
		dir = above
	}
}
