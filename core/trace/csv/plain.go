package csv

import (
	"math"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// plain reads the first line of window into row row of b if its fields have neither blanks nor quotes
// around them, none that is read is empty, and kinds are single letters. It returns the length of the line.
// Any other line, a wrong one too, is left to [parser.row], which takes more than twice the time.
func (p *parser) plain(window []byte, b *trace.Batch, row int) (taken int, ok bool) {
	text := window[:len(window)+lines.Slack]
	c := &p.columns
	var values [known]uint64 // a kind that is left out is a load
	at := 0
	for i := range c.count {
		ok := true
		switch column := c.column[i]; column {
		case kind:
			k := kindLetters[text[at]]
			values[kind], ok = uint64(k), k != noKind
			at++
		case known:
			for text[at] != c.separator && text[at] != '\n' && text[at] != '"' {
				at++
			}
		default:
			values[column], at, ok = plainNumber(text, at)
		}
		end := c.separator
		if i == c.count-1 {
			if end = '\n'; text[at] == '\r' {
				at++
			}
		}
		if !ok || text[at] != end {
			return 0, false
		}
		at++
	}
	if c.count == 0 || max(values[size], values[thread]) > math.MaxUint32 || !lines.FitsBytes(values[address], uint32(values[size])) {
		return 0, false
	}
	b.Addr[row], b.Bytes[row], b.Kind[row] = values[address], uint32(values[size]), trace.Kind(values[kind])
	if b.PC != nil {
		b.PC[row] = values[pc]
	}
	if b.Thread != nil {
		b.Thread[row] = uint32(values[thread])
	}
	return at, true
}

// plainNumber reads a number at text[at:], of up to 16 hexadecimal or 19 decimal digits, and
// returns the index behind it. There are [lines.Slack] bytes behind the last line.
func plainNumber(text []byte, at int) (v uint64, end int, ok bool) {
	if text[at] == '0' && text[at+1] == 'x' {
		at += 2
		v, n := lines.HexAt((*[lines.Slack]byte)(text[at:]), 0)
		return v, at + n, n > 0
	}
	for end = at; end < at+19; end++ {
		digit := text[end] - '0'
		if digit > 9 {
			break
		}
		v = v*10 + uint64(digit)
	}
	return v, end, end > at
}
