package pass

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func compressed(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(text) // a bytes.Buffer returns no error
	_ = w.Close()
	return b.Bytes()
}

func lookAt(t *testing.T, content []byte, format string) error {
	t.Helper()
	in, err := Open(context.Background(), "-", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	_, err = in.Look(context.Background(), format, 1)
	return err
}

// TestMeasurementsAreRecognised checks that all files with measurements are recognised, also if they
// are compressed or begin with long comments, and that the error contains the whole content.
func TestMeasurementsAreRecognised(t *testing.T) {
	const folder = "../../../../core/measured/testdata"
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, f := range files {
		if extension := filepath.Ext(f.Name()); extension != ".csv" && extension != ".script" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		marked := append([]byte("\xef\xbb\xbf"), text...)
		long := append(bytes.Repeat([]byte("# a comment of perf script --header\n"), 1000), text...)
		for what, c := range map[string]struct{ stored, text []byte }{
			"plain": {text, text}, "compressed": {compressed(text), text}, "after a long comment": {long, long}, "after a byte order mark": {marked, marked},
		} {
			checked++
			var found *MeasuredError
			if err := lookAt(t, c.stored, ""); !errors.As(err, &found) {
				t.Errorf("%s, %s: got the error %v", f.Name(), what, err)
			} else if content, err := io.ReadAll(found.Content); err != nil || !bytes.Equal(content, c.text) {
				t.Errorf("%s, %s: got %d bytes and the error %v, want %d bytes", f.Name(), what, len(content), err, len(c.text))
			}
		}
		var found *MeasuredError
		if err := lookAt(t, text, "csv"); err == nil || errors.As(err, &found) {
			t.Errorf("%s with a format: got the error %v, want an error of the format", f.Name(), err)
		}
	}
	if checked < 40 {
		t.Errorf("only %d files were checked", checked)
	}
	for _, text := range []string{"hello\n", strings.Repeat("# no measurement\n", 100000), "\x00\x01\x02"} {
		var found *MeasuredError
		if err := lookAt(t, []byte(text), ""); err == nil || errors.As(err, &found) {
			t.Errorf("%.20q: got the error %v, want an unknown format", text, err)
		}
	}
	for _, name := range tracetest.SmallTraces {
		var found *MeasuredError
		if err := lookAt(t, tracetest.Small(name), ""); errors.As(err, &found) {
			t.Errorf("the trace %s is recognised as measurements", name)
		}
	}
}

func TestReadFile(t *testing.T) {
	folder := t.TempDir()
	for _, test := range []struct {
		stored []byte
		want   string
		err    string
	}{
		{[]byte("text\n"), "text\n", ""},
		{compressed([]byte("text\n")), "text\n", ""},
		{compressed(compressed([]byte("text\n"))), "text\n", ""},
		{nil, "", ""},
		{compressed(nil), "", ""},
		{compressed([]byte("text\n"))[:20], "", "the file: the gzip stream is truncated after"},
	} {
		name := filepath.Join(folder, "f")
		if err := os.WriteFile(name, test.stored, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(name)
		if string(got) != test.want || (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
			t.Errorf("%q: got %q and the error %v, want %q and the error %q", test.stored, got, err, test.want, test.err)
		}
	}
	if _, err := ReadFile(filepath.Join(folder, "none")); err == nil || strings.Contains(err.Error(), folder) {
		t.Errorf("got the error %v for a missing file, want an error without its name", err)
	}
}
