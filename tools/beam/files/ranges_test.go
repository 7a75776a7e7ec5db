package files_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stackglass/stackglass/tools/beam/files"
)

// store imitates the parts of the protocols of Google Cloud Storage and Amazon S3 that read an object.
type store struct {
	content []byte
	version atomic.Int64
	sent    atomic.Int64
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version, changed := s.version.Load(), time.Unix(1_700_000_000, 0).UTC()
	if wanted := r.URL.Query().Get("generation"); wanted != "" && wanted != strconv.FormatInt(version, 10) {
		http.NotFound(w, r)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/x.sgt") {
		http.NotFound(w, r)
		return
	}
	if strings.Contains(r.URL.Path, "/b/bucket/o/") && r.URL.Query().Get("alt") == "json" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind": "storage#object", "bucket": "bucket", "name": "x.sgt", "size": "%d", "generation": "%d", "updated": %q}`,
			len(s.content), version, changed.Format(time.RFC3339))
		return
	}
	w.Header().Set("ETag", fmt.Sprintf(`"%d"`, version))
	w.Header().Set("X-Goog-Generation", strconv.FormatInt(version, 10))
	http.ServeContent(&counted{w, &s.sent}, r, "", changed, bytes.NewReader(s.content))
}

type counted struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// Objects are read in ranges: the same bytes as in the object, without reading the other ranges and
// without a copy. A change of the object is an error.
func TestRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := &store{content: make([]byte, 50<<20)}
	for i := range s.content {
		s.content[i] = byte(rng.Uint32())
	}
	server := httptest.NewServer(s)
	defer server.Close()
	for name, value := range map[string]string{
		"STORAGE_EMULATOR_HOST": server.URL, "AWS_ENDPOINT_URL": server.URL,
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	ctx := context.Background()
	for _, name := range []string{"gs://bucket/x.sgt", "s3://bucket/x.sgt"} {
		t.Run(name[:2], func(t *testing.T) {
			s.version.Store(7)
			s.sent.Store(0)
			temporary := t.TempDir()
			f, err := files.Open(ctx, name, temporary)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if f.Bytes != int64(len(s.content)) || !f.Same(ctx, name) {
				t.Fatalf("%d bytes, changed %v", f.Bytes, f.Changed)
			}
			b := make([]byte, 3<<20)
			for _, at := range []int64{0, 4<<20 - 5, 4 << 20, f.Bytes - 10, f.Bytes, f.Bytes + 1} {
				n, err := f.ReadAt(b, at)
				want := s.content[min(at, f.Bytes):min(at+int64(len(b)), f.Bytes)]
				if !bytes.Equal(b[:n], want) || (err == io.EOF) != (n < len(b)) || err != nil && err != io.EOF {
					t.Errorf("at %d: %d bytes, %v, want %d", at, n, err, len(want))
				}
			}
			if sent := s.sent.Load(); sent > 3*4<<20 || sent == 0 {
				t.Errorf("%d bytes were sent, want at most three blocks", sent)
			}
			if left, _ := os.ReadDir(temporary); len(left) > 0 {
				t.Errorf("%v was copied", left)
			}
			s.version.Store(8)
			if n, err := f.ReadAt(b, 20<<20); err == nil || err == io.EOF {
				t.Errorf("%d bytes of a changed object were read: %v", n, err)
			}
			if _, err := files.Open(ctx, name[:12]+"none", temporary); err == nil || !strings.Contains(err.Error(), name[:12]+"none") {
				t.Errorf("a missing object: %v", err)
			}
		})
	}
}
