package open_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/loops/sgl"
	"github.com/stackglass/stackglass/core/open"
	opengzip "github.com/stackglass/stackglass/core/open/gzip"
	opensnappy "github.com/stackglass/stackglass/core/open/snappy"
	"github.com/stackglass/stackglass/core/open/xz"
	openzip "github.com/stackglass/stackglass/core/open/zip"
	"github.com/stackglass/stackglass/core/open/zstd"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lackey"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

var all = open.Options{Packings: []open.Packing{opengzip.Packing, zstd.Packing, xz.Packing, openzip.Packing, opensnappy.Packing}}

// read opens a trace and reads it to its end.
func read(r io.Reader, o open.Options) (*open.Trace, *trace.Batch, error) {
	t, err := open.Open("t", r, o)
	if err != nil {
		return nil, &trace.Batch{}, err
	}
	b, err := trace.ReadAll(t)
	return t, b, err
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func packLZ4(t testing.TB, text []byte, options ...lz4.Option) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := lz4.NewWriter(&packed)
	if err := w.Apply(options...); err != nil {
		t.Fatal(err)
	}
	pack(t, w, text)
	return packed.Bytes()
}

// pack writes text to w, and closes w.
func pack(t testing.TB, w io.WriteCloser, text []byte) {
	t.Helper()
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func packGzip(t testing.TB, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	pack(t, gzip.NewWriter(&packed), text)
	return packed.Bytes()
}

// packZip returns an archive. The parameter members lists the names and the contents of its
// members. As in an archive that was written to a pipe, a descriptor follows each deflated member.
func packZip(t testing.TB, method uint16, members ...any) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for i := 0; i < len(members); i += 2 {
		content := members[i+1].([]byte)
		header := &zip.FileHeader{Name: members[i].(string), Method: method}
		create := w.CreateHeader
		if method == zip.Store {
			header.CRC32 = crc32.ChecksumIEEE(content)
			header.UncompressedSize64, header.CompressedSize64 = uint64(len(content)), uint64(len(content))
			create = w.CreateRaw
		}
		member, err := create(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func packSnappy(t testing.TB, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	pack(t, snappy.NewBufferedWriter(&packed), text)
	return packed.Bytes()
}

// packSnappyUnchecked returns a stream like DynamoRIO's streams. The stream consists of two chunks
// without checksums, one compressed and one uncompressed. Each chunk contains the text.
func packSnappyUnchecked(text []byte) []byte {
	chunk := func(kind byte, content []byte) []byte {
		return join([]byte{kind, byte(len(content)), byte(len(content) >> 8), 0}, content)
	}
	return join(chunk(0xff, []byte("sNaPpY")), chunk(2, snappy.Encode(nil, text)), chunk(0xfe, []byte("padding")), chunk(3, text))
}

func skippable(content string) []byte {
	frame := binary.LittleEndian.AppendUint32(nil, 0x184d2a53)
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(content)))
	return append(frame, content...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// packed is a compressed file that contains one or several copies of the text of data.lackey.
type packed struct {
	name    string
	bytes   []byte
	times   int
	chain   string
	checked bool // whether every wrong byte is detected before or at the end of the file
	clean   int  // maximum number of truncation offsets at which reading ends without an error, because they are between two frames
}

func packings(t testing.TB) []packed {
	text := tracetest.Small("data.lackey")
	legacy, frame := file(t, "legacy-l.lz4"), packLZ4(t, text, lz4.BlockChecksumOption(true))
	member := packGzip(t, text)
	return []packed{
		{"plain", text, 1, "", false, 0},
		{"lz4 frame", frame, 1, "lz4", true, 0},
		{"lz4 linked blocks", file(t, "linked-BD-B4-BX-content-size.lz4"), 25, "lz4", true, 0},
		{"lz4 legacy", legacy, 1, "lz4", false, 0},
		{"lz4 two legacy frames", join(legacy, legacy), 2, "lz4", false, 2},
		{"lz4 frames", join(frame, skippable("x"), frame, frame), 3, "lz4", true, 3},
		{"lz4 skippable first and last", join(skippable(""), skippable("header"), frame, skippable("index")), 1, "lz4", true, 1},
		{"lz4 frames and legacy frames", join(frame, legacy, frame, legacy, skippable("x"), legacy), 5, "lz4", false, 6},
		{"gzip", file(t, "plain.gz"), 1, "gzip", true, 0},
		{"gzip members", join(member, member), 2, "gzip", true, 1},
		{"zstd", file(t, "check.zst"), 1, "zstd", true, 0},
		{"zstd skippable first", join(skippable("pzstd"), file(t, "check.zst"), file(t, "check.zst")), 2, "zstd", true, 1},
		{"xz", file(t, "crc64.xz"), 1, "xz", true, 0},
		{"xz streams", join(file(t, "crc64.xz"), file(t, "crc64.xz")), 2, "xz", true, 1},
		{"zip", packZip(t, zip.Deflate, "trace.lackey", text), 1, "zip", false, 0},
		{"zip stored", packZip(t, zip.Store, "chunk.0000", text[:100], "chunk.0001", text[100:]), 1, "zip", false, 0},
		{"zip chunks", packZip(t, zip.Deflate, "chunk.0000", text, "chunk.0001", text), 2, "zip", false, 0},
		{"snappy", packSnappy(t, text), 1, "snappy", false, 0},
		{"snappy unchecked", packSnappyUnchecked(text), 2, "snappy", false, 2},
		{"nested", packGzip(t, packLZ4(t, text)), 1, "gzip lz4", true, 0},
	}
}

// wanted returns the records of the text, repeated the given number of times.
func wanted(t testing.TB, times int) *trace.Batch {
	t.Helper()
	_, b, err := read(bytes.NewReader(bytes.Repeat(tracetest.Small("data.lackey"), times)), all)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func isPrefix(got, want *trace.Batch) bool {
	if got.Len() > want.Len() {
		return false
	}
	for i := range got.Addr {
		if got.Addr[i] != want.Addr[i] || got.Bytes[i] != want.Bytes[i] || got.Kind[i] != want.Kind[i] {
			return false
		}
	}
	return true
}

func TestCompressionFormats(t *testing.T) {
	for _, p := range packings(t) {
		t.Run(p.name, func(t *testing.T) {
			want := wanted(t, p.times)
			for _, r := range []io.Reader{bytes.NewReader(p.bytes), iotest.OneByteReader(bytes.NewReader(p.bytes)), iotest.DataErrReader(bytes.NewReader(p.bytes))} {
				tr, got, err := read(r, all)
				if err != nil {
					t.Fatal(err)
				}
				if got.Len() != want.Len() || !isPrefix(got, want) {
					t.Errorf("the trace has %d rows, want the %d rows of the text", got.Len(), want.Len())
				}
				text := len(tracetest.Small("data.lackey")) * p.times
				if chain := strings.Join(tr.Packings(), " "); chain != p.chain || tr.Format() != "lackey" || tr.Unpacked() != int64(text) {
					t.Errorf("the format is %s in %q with %d bytes, want lackey in %q with %d bytes", tr.Format(), chain, tr.Unpacked(), p.chain, text)
				}
				if h := tr.Header(); !h.Sizes || h.Format != "lackey" {
					t.Errorf("the header is %+v", h)
				}
			}
		})
	}
}

// TestTruncatedFiles truncates files at many offsets. The reader must return all complete lines
// before the truncation offset. It must then report the damage, unless the file was truncated
// between two frames.
func TestTruncatedFiles(t *testing.T) {
	for _, p := range packings(t) {
		if p.chain == "" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			want, clean, rows := wanted(t, p.times), 0, 0
			for cut := 8; cut < len(p.bytes); cut += stride(cut, len(p.bytes)) {
				_, got, err := read(bytes.NewReader(p.bytes[:cut]), all)
				var damage *trace.DamageError
				switch {
				case !isPrefix(got, want):
					t.Fatalf("truncated at byte %d, the rows differ from the text", cut)
				case errors.As(err, &damage):
					if !damage.Cut {
						t.Fatalf("truncated at byte %d of %d, reading ends with %v", cut, len(p.bytes), err)
					}
				case err == nil:
					if got.Len()%(want.Len()/p.times) != 0 {
						t.Fatalf("truncated at byte %d of %d, the trace has %d rows, and reading ends without an error", cut, len(p.bytes), got.Len())
					}
					clean++
				case !errors.As(err, new(*open.EmptyError)):
					t.Fatalf("truncated at byte %d of %d, reading ends with %v", cut, len(p.bytes), err)
				}
				if got.Len() < rows {
					t.Fatalf("truncated at byte %d, the trace has %d rows, want at least %d, as in the previous, shorter file", cut, got.Len(), rows)
				}
				rows = got.Len()
			}
			if clean > p.clean {
				t.Errorf("%d truncations were not detected, want at most %d, which are between frames", clean, p.clean)
			}
		})
	}
}

// stride returns the distance to the next truncation offset. The distance is 1 near the beginning
// and the end of a file, and larger in the middle, because testing every offset would take too
// long. Testing an offset is slow, because decompressors allocate megabytes.
func stride(cut, length int) int {
	if cut < 48 || length-cut < 48 {
		return 1
	}
	return 1 + length/60
}

// TestWrongBytes changes single bytes of a file. Reading must not panic, and if the format has
// checksums, reading a wrong trace must return an error.
func TestWrongBytes(t *testing.T) {
	for _, p := range packings(t) {
		if p.chain == "" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			want := wanted(t, p.times)
			for i := 0; i < len(p.bytes); i += stride(i, len(p.bytes)) {
				wrong := bytes.Clone(p.bytes)
				wrong[i] ^= 1 << (i % 8)
				_, got, err := read(bytes.NewReader(wrong), all)
				if p.checked && err == nil && !(got.Len()%(want.Len()/p.times) == 0 && isPrefix(got, want)) {
					t.Fatalf("byte %d of %d is wrong, but reading ends without an error", i, len(p.bytes))
				}
			}
		})
	}
}

func TestRowsBeforeWrongChecksum(t *testing.T) {
	want := wanted(t, 1)
	for _, c := range []struct {
		name  string
		bytes []byte
		from  int // offset of the checksum from the end of the file
	}{
		{"lz4", packLZ4(t, tracetest.Small("data.lackey")), 4},
		{"gzip", file(t, "plain.gz"), 8},
		{"zstd", file(t, "check.zst"), 4},
	} {
		c.bytes[len(c.bytes)-c.from] ^= 1
		_, got, err := read(bytes.NewReader(c.bytes), all)
		var damage *trace.DamageError
		if !errors.As(err, &damage) || damage.Cut || damage.Layer != c.name {
			t.Errorf("%s: got %v, want a DamageError that does not report truncation", c.name, err)
		}
		if got.Len() != want.Len() && c.name != "zstd" || !isPrefix(got, want) {
			t.Errorf("%s: %d rows precede the error, want all %d rows", c.name, got.Len(), want.Len())
		}
	}
}

func TestTextTruncatedWithinLine(t *testing.T) {
	tr, err := open.Open("a.lackey", strings.NewReader(" L 8,8\n S 1f"), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := tracetest.Outcomes(t, tr, 0)
	if len(got) != 2 || got[0].Addr != 8 || got[1].ErrorLine != 2 {
		t.Errorf("got %+v, want a reference and an error on line 2", got)
	}
}

func TestSourceErrorIsNotDamage(t *testing.T) {
	gone := fmt.Errorf("the disk is gone: %w", io.ErrUnexpectedEOF)
	for _, p := range packings(t) {
		half := p.bytes[:len(p.bytes)/2]
		_, _, err := read(io.MultiReader(bytes.NewReader(half), iotest.ErrReader(gone)), all)
		if err != gone {
			t.Errorf("%s: %v, want the error of the underlying reader", p.name, err)
		}
	}
}

// TestUnpackerErrorIsNotDamage checks that the error names the compression format whose
// decompression failed, even if it is inside other compression formats, and that the rows before
// the error are returned.
func TestUnpackerErrorIsNotDamage(t *testing.T) {
	died := errors.New("it died")
	failing := open.Packing{Name: "xz", New: func(io.Reader) (io.Reader, error) {
		rows := bytes.NewReader(packGzip(t, tracetest.Small("data.lackey")))
		return io.MultiReader(io.LimitReader(rows, 100), iotest.ErrReader(&open.UnpackerError{Err: died})), nil
	}}
	_, got, err := read(bytes.NewReader(file(t, "crc64.xz")), open.Options{Packings: []open.Packing{opengzip.Packing, failing}})
	var unpacker *open.UnpackerError
	if !errors.As(err, &unpacker) || unpacker.Packing != "xz" || !errors.Is(err, died) {
		t.Fatalf("got %v, want an UnpackerError for xz", err)
	}
	if got.Len() == 0 || !isPrefix(got, wanted(t, 1)) {
		t.Errorf("%d rows precede the error, want the first rows of the trace", got.Len())
	}
	if said, nameless := err.Error(), unpacker.Nameless(); said != "t is compressed with xz, and it died; or decompress the file first, with xz -d" ||
		nameless != "the trace"+strings.TrimPrefix(said, "t") {
		t.Errorf("got %q and %q", said, nameless)
	}
}

func TestFormats(t *testing.T) {
	for name, format := range map[string]string{
		"threads.lackey": "lackey", "blocks.lackey": "lackey", "data.lackey": "lackey", "small.din": "din", "small.csv": "csv",
	} {
		for _, o := range []open.Options{{}, {Format: format}} {
			tr, b, err := read(bytes.NewReader(tracetest.Small(name)), o)
			if err != nil || tr.Format() != format || b.Len() == 0 {
				t.Errorf("%s: error %v, want rows in the format %s", name, err, format)
			}
		}
	}
	for _, text := range []string{
		"\ufeff L 8,8\n",
		"\ufeffaddr\n8\n",
		strings.Repeat("==1== a line from Valgrind\n", 1000) + " L 8,8\n", // this text is longer than the number of bytes that are used to recognise the format
	} {
		if _, b, err := read(strings.NewReader(text), all); err != nil || b.Len() != 1 {
			t.Errorf("%.20q: got %d rows and %v, want one row", text, b.Len(), err)
		}
	}
}

// container converts lackey text to a container.
func container(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	r, m := lackey.NewReader("t", strings.NewReader(text)), sgt.NewImporter(&out, nil)
	b := trace.NewBatch(0)
	for r.Next(b) == nil {
		if err := m.Write(b, r.Header()); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(sgt.End{How: "converted"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// folded compresses a lackey trace to a loop-compressed trace.
func folded(t testing.TB, text string) []byte {
	t.Helper()
	r, f, b := lackey.NewReader("t", strings.NewReader(text)), loops.NewFolder(0), trace.NewBatch(0)
	for r.Next(b) == nil {
		if err := f.Consume(b); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	w := sgl.NewWriter(&out)
	if err := w.Write(f.Finish(), r.Header()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(r.Header(), sgt.End{How: "converted"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestContainers checks that containers are not decompressed as LZ4 files, even though they consist
// of LZ4 frames, and even if they are inside other compression formats.
func TestContainers(t *testing.T) {
	want := wanted(t, 1)
	text := string(tracetest.Small("data.lackey"))
	for format, file := range map[string][]byte{"sgt": container(t, text), "sgl": folded(t, text)} {
		for chain, packed := range map[string][]byte{"": file, "gzip": packGzip(t, file), "lz4": packLZ4(t, file)} {
			tr, got, err := read(bytes.NewReader(packed), all)
			if err != nil || got.Len() != want.Len() || !isPrefix(got, want) {
				t.Errorf("%s in %q: got %v and %d rows, want %d rows", format, chain, err, got.Len(), want.Len())
				continue
			}
			if packings := strings.Join(tr.Packings(), " "); tr.Format() != format || packings != chain || (tr.Container() != nil) != (format == "sgt") {
				t.Errorf("the format is %s in %q, want %s in %q", tr.Format(), packings, format, chain)
			}
			if h := tr.Header(); format == "sgt" && (h.Format != "sgt" || !h.Sizes || h.Threads || h.PCs || h.Program == nil) {
				t.Errorf("the header is %+v", h)
			}
		}
	}
}

// TestStrictContainer checks that Strict ends the trace at the first damaged chunk.
func TestStrictContainer(t *testing.T) {
	file := container(t, string(tracetest.Small("data.lackey")))
	at := bytes.LastIndex(file, []byte("\x04\x22\x4d\x18")) // offset of the content of the only chunk
	file[at+40] ^= 1
	for _, strict := range []bool{false, true} {
		_, got, err := read(bytes.NewReader(file), open.Options{Strict: strict})
		var damage *trace.DamageError
		if !errors.As(err, &damage) || damage.Cut || got.Len() != 0 {
			t.Errorf("with Strict = %v, got %d rows and %v", strict, got.Len(), err)
		}
	}
}

// TestRecognise checks that traces in every format are recognised, and that the format can be
// selected by its name.
func TestRecognise(t *testing.T) {
	champsim := make([]byte, 128)
	for at, v := range map[int]uint64{0: 0x401000, 32: 0x7fff0000, 64: 0x401004, 64 + 16: 0x7fff0008} {
		binary.LittleEndian.PutUint64(champsim[at:], v)
	}
	samples := map[string]string{
		"sgt":        string(container(t, " L 1fff000708,8\n S 1fff000700,8\n")),
		"sgl":        string(folded(t, " L 1fff000708,8\n S 1fff000700,8\n")),
		"gem5":       "gem5\x05\x0a\x01x\x18\x01\x08\x08\x05\x10\x01\x18\x40\x20\x08",
		"drmemtrace": "\x19\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00\x40\x00\x00\x00\x00\x00\x00\x00",
		"lackey":     " L 1fff000708,8\n",
		"din":        "0 1fff000708\n",
		"ppt":        "BB START: b2f3727763ed2e86\nLOAD: 0x7ffd96666320\n",
		"pinatrace":  "0x7f3acd1ead50: R 0x7f3acd0bde84\n",
		"execlog":    "0, 0x40174a, 0xfffab1e8, \"callq 0x401200\", store, 0x40007ffdf8\n",
		"csv":        "addr\n8\n",
		"champsim":   string(champsim),
	}
	for _, f := range open.Formats() {
		for _, o := range []open.Options{{}, {Format: f.Name}} {
			tr, b, err := read(strings.NewReader(samples[f.Name]), o)
			if err != nil || tr.Format() != f.Name || b.Len() == 0 {
				t.Errorf("%s: error %v, want rows in this format", f.Name, err)
			}
		}
	}
}

// TestBinaryWithoutNewline checks which bytes of a file are used to recognise its format.
// Incomplete last lines are removed only if the file is a text file.
func TestBinaryWithoutNewline(t *testing.T) {
	record := make([]byte, 64)
	record[0], record[32] = 1, 2
	tr, b, err := read(bytes.NewReader(bytes.Repeat(record, 1000)), open.Options{})
	if err != nil || tr.Format() != "champsim" || b.Len() != 2000 {
		t.Errorf("got %d rows and %v, want 2000 ChampSim rows", b.Len(), err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, text string
		options    open.Options
		want       string
	}{
		{"empty", "", all, `t: the file is empty; check the tool that wrote the file`},
		{"empty inside", string(packGzip(t, nil)), all, `t: the file is empty after decompression (gzip); check the tool that wrote the file`},
		{"skippable frames only", string(skippable("x")), all, `t: the file is empty after decompression (lz4); check the tool that wrote the file`},
		{"zstd not read", string(file(t, "check.zst")), open.Options{}, `t is compressed with zstd, which is not supported here; decompress the file first, with zstd -d`},
		{"no such format", " L 8,8\n", open.Options{Format: "elf"}, `input-format "elf", want ` + names()},
		{"unknown", "hello\nworld\n", all, `t: unknown format; the file begins with 68 65 6c 6c 6f 0a 77 6f 72 6c 64 0a "hello\nworld\n"
  not sgt: bytes 8 to 11 are not SGT.
  not sgl: bytes 8 to 11 are not "SGL."
  not gem5: the file does not begin with gem5
  not drmemtrace: the first record is of type 25960, want 25, a header
  not lackey: line 1: line "hello", want I, L, S or M, then address,bytes
  not din: line 1: label "hello", want 0 to 4
  not ppt: line 1: line "hello", want an address with 0x, alone or after LOAD:, STORE:, LD: or ST:, or a block after BB START: or BB DONE:
  not pinatrace: line 1: line "hello", want instruction: R or W address
  not execlog: line 1: processor "hello", want a decimal number, at most 4294967295
  not csv: line 1: header "hello": there is no column of addresses, want a column named addr, and optionally tid, pc, rw and size
  not champsim: the file is shorter than one record, which has 64 bytes
set --input-format to one of ` + names() + `, or convert the trace to one of these formats`},
		{"UTF-16", "\xff\xfe0\x00 \x00", all, `the file is UTF-16 text, as written by PowerShell; save the file as UTF-8`},
	} {
		_, _, err := read(strings.NewReader(c.text), c.options)
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", c.name, err, c.want)
		}
	}
}

// TestRawFileOfDynamoRIO checks that the error for a file with the name of one of DynamoRIO's raw files
// says how to decode it, unless the file begins with the magic number of another format.
func TestRawFileOfDynamoRIO(t *testing.T) {
	const raw = "\x01\x02\x03\x04\x05\x06\x07\xa4"
	for _, c := range []struct{ name, text, want string }{
		{"drmemtrace.app.1.2.raw", raw, open.DecodeRaw},
		{"a.raw.lz4", raw, open.DecodeRaw},
		{"a.rawer", raw, "set --input-format"},
		{"a.raw", "\x7fELF\x02\x01\x01\x00", "the file is a program"},
	} {
		_, err := open.Open(c.name, strings.NewReader(c.text), open.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || c.want != open.DecodeRaw && strings.Contains(err.Error(), open.DecodeRaw) {
			t.Errorf("%s: got the error %v, want %q in it", c.name, err, c.want)
		}
	}
}

func names() string {
	var all []string
	for _, f := range open.Formats() {
		all = append(all, f.Name)
	}
	return strings.Join(all, ", ")
}

// TestTooManyCompressionLayers checks that a file that decompresses to itself is not decompressed
// forever.
func TestTooManyCompressionLayers(t *testing.T) {
	text := tracetest.Small("data.lackey")
	for range 5 {
		text = packGzip(t, text)
	}
	_, _, err := read(bytes.NewReader(text), all)
	if !errors.As(err, new(*open.UnknownError)) {
		t.Errorf("got %v, want an error about too many compressions", err)
	}
}

func TestNoAllocations(t *testing.T) {
	text := bytes.Repeat(tracetest.Small("data.lackey"), 1000)
	tr, err := open.Open("t", bytes.NewReader(text), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tracetest.CheckAllocations(t, testing.AllocsPerRun, tr)
}

func TestRealTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short")
	}
	for name, want := range map[string]int{"gemm": 8469460, "jacobi2d": 7545260, "sort": 10498764} {
		f, err := os.Open(tracetest.RealPath(t, name))
		if err != nil {
			t.Fatal(err)
		}
		tr, err := open.Open(name, f, open.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rows, b := 0, trace.NewBatch(0)
		for err = tr.Next(b); err == nil; err = tr.Next(b) {
			rows += b.Len()
		}
		if err != io.EOF || rows != want {
			t.Errorf("%s: got %d references and %v, want %d references", name, rows, err, want)
		}
		f.Close()
	}
}

func FuzzOpen(f *testing.F) {
	for _, p := range packings(f) {
		if len(p.bytes) < 8000 {
			f.Add(p.bytes)
		}
	}
	for _, name := range tracetest.SmallTraces {
		f.Add(tracetest.Small(name))
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		tr, err := open.Open("t", bytes.NewReader(packed), all)
		if err != nil {
			return
		}
		// Read only the beginning, because a few bytes may decompress to gigabytes.
		b := trace.NewBatch(0)
		for range 200 {
			err := tr.Next(b)
			if err != nil && b.Len() > 0 || err == nil && b.Len() == 0 {
				t.Fatalf("Next returned %d rows together with the error %v", b.Len(), err)
			}
			if err != nil && !trace.IsSyntax(err) {
				if again := tr.Next(b); again != err || b.Len() > 0 {
					t.Fatalf("Next returned %v, and then %v", err, again)
				}
				return
			}
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for _, name := range tracetest.RealTraces {
		b.Run(name, func(b *testing.B) {
			packed, err := os.ReadFile(tracetest.RealPath(b, name))
			if err != nil {
				b.Fatal(err)
			}
			batch, rows := trace.NewBatch(0), 0
			for b.Loop() {
				tr, err := open.Open(name, bytes.NewReader(packed), open.Options{})
				for rows = 0; err == nil; err = tr.Next(batch) {
					rows += batch.Len()
				}
				if err != io.EOF {
					b.Fatal(err)
				}
				b.SetBytes(tr.Unpacked())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/line")
		})
	}
}

// TestDecompressionBombs uses files that decompress to at least a thousand times their length.
// TestDecompressionBombs checks that these files need no more memory than usual files, whatever
// they contain.
func TestDecompressionBombs(t *testing.T) {
	const length = 16 << 20
	contents := map[string]struct{ head, fill, want string }{
		"blank lines":  {" L 10,8\n", "\n", ""},
		"one line":     {" L 10,8\n", "8", "want at most"},
		"zeros":        {"", "\x00", "unknown format"},
		"events alone": {"==7== lackey\n", "==7== nothing\n", ""},
	}
	packers := map[string]func(testing.TB, []byte) []byte{
		"lz4":  func(t testing.TB, text []byte) []byte { return packLZ4(t, text) },
		"gzip": packGzip,
	}
	for name, c := range contents {
		text := append([]byte(c.head), bytes.Repeat([]byte(c.fill), length/len(c.fill))...)
		for packing, pack := range packers {
			t.Run(name+" in "+packing, func(t *testing.T) {
				packed := pack(t, text)
				tr, err := open.Open("t", bytes.NewReader(packed), all)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				rows := 0
				for b := trace.NewBatch(0); err == nil; {
					if err = tr.Next(b); err == nil {
						rows += b.Len()
					}
				}
				runtime.ReadMemStats(&after)
				if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
					t.Errorf("reading %d compressed bytes needed %d bytes of memory, want at most 8 MiB", len(packed), n)
				}
				if c.want == "" && err != io.EOF || c.want != "" && !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %d rows, and then %v, want %q", rows, err, c.want)
				}
			})
		}
	}
}
