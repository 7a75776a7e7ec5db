// Package state computes everything that the page shows, in plain Go: the view of a profile with
// findings, bins, curves and tables; the descriptions of a run and of the stored analyses; the
// URL's hash; and the format of numbers.
//
// The package depends on neither the browser nor Vugu, so native tests cover everything that a
// person reads. Data flows through the package as follows:
//
//  1. [NewView] summarises a profile for one line size.
//  2. [View.Findings], [View.MissCurve] and other methods turn the summary into sentences and
//     charts. [View.LevelsTable] and other methods ask verbs of package ask through [Answers], and
//     turn the answers into tables.
//  3. The components of package ui lay out the sentences, charts and tables, and charts.js draws
//     each [Chart].
package state

import (
	"math"
	"strconv"
	"strings"
)

// thin is the narrow no-break space between a number and its unit, and between groups of digits.
const thin = "\u202f"

// Exact formats a whole number with grouped digits, such as "10 761 110".
func Exact(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var out strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteString(thin)
		}
		out.WriteRune(d)
	}
	return out.String()
}

// Spaced rewrites the numbers in a text in the page's style: with grouped digits, and without a
// line break before a unit.
func Spaced(text string) string {
	isDigit := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9' }
	var out strings.Builder
	for i := range len(text) {
		rest := text[i+1:]
		switch {
		case text[i] == ',' && isDigit(i-1) && isDigit(i+1) && isDigit(i+2) && isDigit(i+3) && !isDigit(i+4),
			text[i] == ' ' && isDigit(i-1) && (strings.HasPrefix(rest, "%") || isUnit(rest)):
			out.WriteString(thin)
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// isUnit reports whether a text begins with a unit of bytes, such as KiB.
func isUnit(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	word = strings.TrimRight(word, ".,;:)")
	return word == "B" || len(word) == 3 && strings.HasSuffix(word, "iB") && strings.Contains("KMGT", word[:1])
}

// significant formats x with three significant digits, without an exponent and without trailing
// zeros after the decimal point.
func significant(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return "0"
	}
	decimals := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	if decimals <= 0 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// threeDigits formats x with three significant digits, or, from 1,000, as a whole number with grouped
// digits.
func threeDigits(x float64) string {
	if x >= 1000 {
		return Count(x)
	}
	return significant(x)
}

// SI formats a count with three significant digits and an SI prefix, such as "10.5 M". Counts below
// 10,000 are written in full.
func SI(n uint64) string {
	if n < 10_000 {
		return Exact(n)
	}
	return scaled(float64(n), 1000, []string{"", "k", "M", "G", "T", "P", "E"})
}

// Bytes formats a number of bytes with three significant digits and a binary prefix, such as "1.37
// MiB".
func Bytes(n uint64) string {
	return scaled(float64(n), 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"})
}

func scaled(x, base float64, units []string) string {
	i := 0
	// 999.5 would be rounded to 1000, so use the next unit.
	for x >= base-0.5 && i < len(units)-1 {
		x /= base
		i++
	}
	if units[i] == "" {
		return significant(x)
	}
	return significant(x) + thin + units[i]
}

// Percent formats a share (0 to 1) as a percentage with three significant digits. Only a share of 1
// becomes "100 %".
func Percent(share float64) string {
	p := share * 100
	switch {
	case p == 0:
		return "0" + thin + "%"
	case p < 0.001:
		return "< 0.001" + thin + "%"
	case p >= 99.95 && p < 100:
		return "> 99.9" + thin + "%"
	}
	return significant(p) + thin + "%"
}

// Ratio returns part/whole, or 0 if whole is 0.
func Ratio(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Plural formats a count with its noun, such as "1 line" or "22 494 lines".
func Plural(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Exact(n) + " " + many
}

// Duration formats a time span roughly, such as "40 s", "3 min" or "2 h".
func Duration(millis uint64) string {
	s := (millis + 500) / 1000
	switch {
	case s < 1:
		return "less than a second"
	case s < 90:
		return strconv.FormatUint(s, 10) + thin + "s"
	case s < 90*60:
		return strconv.FormatUint((s+30)/60, 10) + thin + "min"
	}
	return significant(float64(s)/3600) + thin + "h"
}

// Count formats a predicted count, which may be fractional.
func Count(x float64) string { return Exact(uint64(math.Round(x))) }
