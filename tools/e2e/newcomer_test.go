package e2e

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestNewVisitor checks what a new visitor sees. The visitor clicks somewhere on a card, reads the
// answer in the result, follows its links, and drops a file that is not a trace.
func TestNewVisitor(t *testing.T) {
	needStage(t)
	demo := demos(t)[2]
	p := openPage(t)
	p.clickElement(".card:has(#demo-" + demo.Name + ") .go")
	if got, want := p.waitFinished(), truthOf(t, "demo:"+demo.Name).Digest; got != want {
		t.Errorf("digest = %s, want %s", got, want)
	}
	p.waitFor("#lesson")
	said := p.textOf("#lesson")
	for _, sentence := range append([]string{demo.Question}, demo.Lesson...) {
		sentence = regexp.MustCompile(`(\d),(\d{3})`).ReplaceAllString(sentence, "$1 $2")
		if !strings.Contains(said, sentence) {
			t.Errorf("lesson = %q, want a text with %q", said, sentence)
		}
	}
	p.clickElement("#lesson a")
	p.waitTrue("the view that the answer mentions", `document.querySelector("#tab-locality").ariaCurrent === "page" && document.querySelector("#lesson a").textContent.includes("Caches")`)

	// A click on any other part of the card does not open the demo.
	p.clickElement("#back")
	p.waitFor("#kept .open")
	p.clickElement(".card:has(#demo-" + demo.Name + ") summary")
	p.waitTrue("the answer on the demo's card", `document.querySelector(".card:has(#demo-`+demo.Name+`) details").open`)
	if p.has("#result") {
		t.Error("expanding the answer opened a result")
	}

	p.dropFiles(p.writeFile("picture.png", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")), p.writeFile("letter.txt", []byte("Dear Sir or Madam,\n\nno trace\n")))
	p.waitTrue("one collapsed error message for each file", `document.querySelectorAll("#problem details:not([open])").length === 2`)
	p.waitGone("[data-running]")
	if said := p.textOf("#problem"); !strings.Contains(said, "picture.png is a PNG image") || !strings.Contains(said, "letter.txt is not in a supported format") || p.has("#waiting") {
		t.Errorf("problem for two invalid files = %q, want the contents of picture.png and letter.txt", said)
	}
}

// TestWorkshop checks that, after a wrong prediction in one exercise, the user can continue with
// the next exercise.
func TestWorkshop(t *testing.T) {
	needStage(t)
	exercise := demos(t)[0].Predict
	p := openPage(t)
	p.clickElement("#workshop")
	p.waitFor("#predict-ask")
	if p.has("#level-1") || p.has("#answer") || p.has("#timeline") {
		t.Error("the answer is visible before the student has predicted it")
	}
	p.takeScreenshots("exercise")
	wrong := (exercise.Right + 1) % len(exercise.Choices)
	p.clickElement("#predict-" + strconv.Itoa(wrong+1))
	p.waitFor("#level-1")
	if said := p.textOf("#judgement"); !strings.Contains(said, exercise.Choices[wrong]) || !strings.Contains(said, "The answer is: "+exercise.Choices[exercise.Right]) {
		t.Errorf("judgement = %q, want the chosen wrong answer and the right answer", said)
	}
	p.takeScreenshots("exercise-answer")
	p.clickElement("#exercise-next")
	p.waitTrue("the next exercise", `document.querySelector("#exercise-number")?.textContent.startsWith("Exercise 2") && document.querySelector("#predict")`)
	p.reload()
	p.waitFor("#predict")
	p.clickElement("#back")
	p.waitFor("#kept .open")
	p.clickElement("#workshop")
	p.waitFor("#judgement")
}
