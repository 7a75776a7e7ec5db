package command

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// drRecord appends a record in DynamoRIO's format.
func drRecord(to []byte, kind, size uint16, value uint64) []byte {
	to = binary.LittleEndian.AppendUint16(to, kind)
	to = binary.LittleEndian.AppendUint16(to, size)
	return binary.LittleEndian.AppendUint64(to, value)
}

// drThread returns the trace file of a thread that stores to the same line in each of 50 buffers.
// The n-th buffer begins at the time 2n plus the thread's number.
func drThread(thread uint64) []byte {
	const (
		header, threadID, marker, timestamp, instruction, store = 25, 22, 28, 2, 10, 1
	)
	all := drRecord(nil, header, 0, 2)
	all = drRecord(all, threadID, 0, thread)
	for n := range uint64(50) {
		all = drRecord(all, marker, timestamp, 2*n+thread)
		all = drRecord(all, instruction, 4, 0x401000)
		all = drRecord(all, store, 8, 0x10000+8*thread)
	}
	return all
}

// zipHalves returns a ZIP archive in DynamoRIO's form, whose members are the two halves of a file.
func zipHalves(t *testing.T, file []byte) string {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	half := len(file) / 24 * 12
	for i, part := range [][]byte{file[:half], file[half:]} {
		member, err := w.Create("chunk.000" + strconv.Itoa(i))
		if err == nil {
			_, err = member.Write(part)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.String()
}

// TestFolderOfThreads checks that the files of a DynamoRIO trace are merged by their timestamps.
func TestFolderOfThreads(t *testing.T) {
	inFolder(t, map[string]string{
		"a.dir/trace/drmemtrace.a.1.trace.zip": zipHalves(t, drThread(1)),
		"a.dir/trace/drmemtrace.a.2.trace":     string(drThread(2)),
		"a.dir/trace/cpu_schedule.bin.zip":     "no trace",
		"a.dir/raw/modules.log":                "no trace",
		"raw.dir/raw/drmemtrace.a.1.raw.gz":    "no trace",
		"mixed.dir/drmemtrace.a.1.trace":       string(drThread(1)),
		"mixed.dir/notes.txt":                  "These are notes.\n",
		"truncated.dir/drmemtrace.a.1.trace":   string(drThread(1)),
		"truncated.dir/drmemtrace.a.2.trace":   string(drThread(2)[:1000]),
		"profiles.dir/trace.lackey":            " L 8,8\n",
		"alone/drmemtrace.app.1.trace.zip":     zipHalves(t, drThread(1)),
	})
	// Except for the first store, each store invalidates the other thread's copy of the line.
	expectExit(t, stackglass("convert", "a.dir", "-o", "a.sgt"), exitOK)
	for _, trace := range []string{"a.dir", "a.sgt"} {
		got := stackglass("simulate", trace, "--cache", "L1=32KiB,8", "--format", "csv")
		const missesOnly = ",100,0,100," // 100 accesses, no hits, 100 misses
		if expectExit(t, got, exitOK); !strings.Contains(got.stdout, missesOnly) {
			t.Errorf("simulate %s printed %s, want %s in it", trace, got.stdout, missesOnly)
		}
	}
	for name, want := range map[string]string{"a.dir": "references read        200", "alone/drmemtrace.app.1.trace.zip": "packed                 zip"} {
		if got := stackglass("info", name); got.code != exitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("info %s printed %s, want %q in it", name, got, want)
		}
	}
	expectExit(t, stackglass("analyze", "a.dir/", "-o", "a.sgp"), exitOK)

	expectExit(t, stackglass("info", "raw.dir"), exitInput, "raw files", "drrun")
	expectExit(t, stackglass("info", "mixed.dir"), exitInput, filepath.Join("mixed.dir", "notes.txt")+": not a DynamoRIO trace")
	expectExit(t, stackglass("info", "profiles.dir"), exitInput, "is a folder")
	expectExit(t, stackglass("info", "truncated.dir"), exitInput, filepath.Join("truncated.dir", "drmemtrace.a.2.trace"), "is truncated after 996")
	if err := os.Mkdir("empty.dir", 0o777); err != nil {
		t.Fatal(err)
	}
	expectExit(t, stackglass("info", "empty.dir"), exitInput, "is a folder")
}
