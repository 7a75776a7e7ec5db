package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestNewcomer does what one does first: click somewhere on a card, read the
// answer where the result is, follow it, and drop what is no trace.
func TestNewcomer(t *testing.T) {
	needStage(t)
	demo := demos(t)[2]
	p := openPage(t)
	p.click(".card:has(#demo-" + demo.Name + ") .go")
	if got, want := p.finished(), truthOf(t, "demo:"+demo.Name).Digest; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	p.waitFor("#lesson")
	said := p.text("#lesson")
	for _, sentence := range append([]string{demo.Question}, demo.Lesson...) {
		sentence = regexp.MustCompile(`(\d),(\d{3})`).ReplaceAllString(sentence, "$1 $2")
		if !strings.Contains(said, sentence) {
			t.Errorf("the result says %q, want %q in it", said, sentence)
		}
	}
	p.click("#lesson a")
	p.wait("the view that the answer speaks of", `document.querySelector("#tab-locality").ariaCurrent === "page" && document.querySelector("#lesson a").textContent.includes("Caches")`)

	// The card's other parts are not the card.
	p.click("#back")
	p.waitFor("#kept .open")
	p.click(".card:has(#demo-" + demo.Name + ") summary")
	p.wait("the answer on the card", `document.querySelector(".card:has(#demo-`+demo.Name+`) details").open`)
	if p.has("#result") {
		t.Error("unfolding the answer opened a result")
	}

	p.drop(p.write("picture.png", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")), p.write("letter.txt", []byte("Dear Sir or Madam,\n\nno trace\n")))
	p.wait("a line for each file", `document.querySelectorAll("#problem details:not([open])").length === 2`)
	p.waitGone("[data-running]")
	if said := p.text("#problem"); !strings.Contains(said, "picture.png is a PNG picture") || !strings.Contains(said, "letter.txt is in no format") || p.has("#waiting") {
		t.Errorf("of two bad files, the page says %q", said)
	}
}
