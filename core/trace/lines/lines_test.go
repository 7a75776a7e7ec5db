package lines

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestHexEqualsReference(t *testing.T) {
	digits := rapid.SliceOfN(rapid.SampledFrom([]byte("0123456789abcdefABCDEFgG/:@`\x00\x10\xb0\xe1")), 8, 8)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(digits, rapid.SliceOfN(rapid.Byte(), 8, 8)).Draw(t, "bytes")
		want := 0
		for want < 8 && strings.IndexByte("0123456789abcdefABCDEF", s[want]) >= 0 {
			want++
		}
		x := binary.LittleEndian.Uint64(s)
		if got := HexDigits(x); got != want {
			t.Fatalf("HexDigits(%q) = %d, want %d", s, got, want)
		}
		for n := range want + 1 {
			v, _ := strconv.ParseUint("0"+string(s[:n]), 16, 64)
			if got := HexValue(x, n); got != v {
				t.Fatalf("HexValue(%q, %d) = %x, want %x", s, n, got, v)
			}
		}
	})
}

func TestHexAtEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, 48).Draw(t, "at")
		digits := rapid.StringMatching(`[0-9a-fA-F]{0,16}`).Draw(t, "digits")
		var s [Slack]byte
		copy(s[copy(s[at:], digits)+at:], rapid.StringMatching(`[ -/g-z:-@]`).Draw(t, "behind"))
		want, _ := strconv.ParseUint("0"+digits, 16, 64)
		if got, end := HexAt(&s, at); got != want || end != at+len(digits) {
			t.Fatalf("HexAt of %q at %d = %x, %d, which is wrong", digits, at, got, end)
		}
	})
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		text     string
		hex      uint64
		wide, ok bool
		decimal  bool
	}{
		{"", 0, false, false, false},
		{"12", 0x12, false, true, true},
		{"fF", 0xff, false, true, false},
		{"0000000000000000000000001", 1, false, true, true},
		{"ffffffffffffffff", math.MaxUint64, false, true, false},
		{"10000000000000000", 0, true, false, true},
		{"18446744073709551615", 0, true, false, true},
		{"18446744073709551616", 0, true, false, false},
		{"1x", 0, false, false, false},
		{"-1", 0, false, false, false},
	} {
		v, wide, ok := Hex([]byte(c.text))
		if ok != c.ok || wide != c.wide || ok && v != c.hex {
			t.Errorf("Hex(%q) = %x, %v, %v", c.text, v, wide, ok)
		}
		want, err := strconv.ParseUint(c.text, 10, 64)
		d, ok := Decimal([]byte(c.text))
		if ok != c.decimal || ok != (err == nil) || ok && d != want {
			t.Errorf("Decimal(%q) = %d, %v", c.text, d, ok)
		}
	}
	for _, c := range []struct {
		addr  uint64
		bytes uint32
		want  bool
	}{{math.MaxUint64, 0, true}, {math.MaxUint64, 1, true}, {math.MaxUint64, 2, false}, {0, math.MaxUint32, true}} {
		if FitsBytes(c.addr, c.bytes) != c.want {
			t.Errorf("FitsBytes(%x, %d) = %v, want the opposite", c.addr, c.bytes, !c.want)
		}
	}
}

// The function "drain" reads all windows, and uses a random number of lines from each window.
func drain(t *rapid.T, b *Buffer) (text string, err error) {
	for {
		window, long, err := b.Window()
		if err != nil {
			return text, err
		}
		if len(window) == 0 || window[len(window)-1] != '\n' || cap(window)-len(window) < Slack {
			t.Fatalf("window %q with capacity %d does not consist of complete lines followed by slack", window, cap(window))
		}
		if long {
			t.Fatalf("a short line was reported as too long")
		}
		n := len(window)
		if rapid.Bool().Draw(t, "first line only") {
			n = bytes.IndexByte(window, '\n') + 1
		}
		text += string(window[:n])
		b.Take(n)
	}
}

func TestWindowsAreWholeLines(t *testing.T) {
	broken := errors.New("broken")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z]{0,9}\n){0,9}[a-z]{0,9}`).Draw(t, "text")
		whole := text[:strings.LastIndexByte(text, '\n')+1]
		wrap := rapid.SampledFrom([]func(io.Reader) io.Reader{
			iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader, bare,
		}).Draw(t, "reader")

		want := text
		if text != whole {
			want += "\n"
		}
		if got, err := drain(t, NewBuffer(wrap(strings.NewReader(text)))); got != want || err != io.EOF {
			t.Fatalf("got %q, error %v, want %q and io.EOF", got, err, want)
		}
		// If the stream breaks, its incomplete last line is dropped.
		stream := io.MultiReader(wrap(strings.NewReader(text)), iotest.ErrReader(broken))
		if got, err := drain(t, NewBuffer(stream)); got != whole || err != broken {
			t.Fatalf("broken stream: got %q, error %v, want %q and the error of the stream", got, err, whole)
		}
	})
}

func bare(r io.Reader) io.Reader { return r }

func TestLongLines(t *testing.T) {
	for _, extra := range []int{-1, 0, 1, 2 * Longest} {
		line := strings.Repeat("x", Longest+extra)
		b := NewBuffer(strings.NewReader("first\n" + line + "\nlast"))
		var got []string
		var longs int
		for {
			window, long, err := b.Window()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if long {
				longs++
			}
			for line := range bytes.Lines(window) {
				got = append(got, string(line[:min(8, len(line)-1)]))
			}
			b.Take(len(window))
		}
		if want := "first xxxxxxxx last"; strings.Join(got, " ") != want {
			t.Errorf("line length = limit %+d bytes: lines %v, want %s", extra, got, want)
		}
		if want := extra > 0; longs > 1 || (longs == 1) != want {
			t.Errorf("line length = limit %+d bytes: %d lines were reported as too long", extra, longs)
		}
	}
}

func TestStreamWithoutProgress(t *testing.T) {
	_, _, err := NewBuffer(silent{}).Window()
	if err != io.ErrNoProgress {
		t.Errorf("error %v, want io.ErrNoProgress", err)
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }
