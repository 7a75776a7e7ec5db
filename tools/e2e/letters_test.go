package e2e

import "testing"

// cutScript cuts a text at every byte, because Vugu's buffer may end at any byte. For each cut, the
// script passes instructions to Vugu's script: select an element, set the first chunk of its inner
// HTML, and set the rest (opcodes 36, 37, 29 and 0). The script returns the text that the element
// shows after each cut.
const cutScript = `(() => {
	const e = document.createElement("p");
	e.id = "two-chunks";
	document.body.append(e);
	const bytes = new TextEncoder().encode("\u2248\u202f4 KiB, \u2248");
	const shown = [];
	for (let cut = 0; cut <= bytes.length; cut++) {
		const buffer = vuguGetRenderArray();
		const view = new DataView(buffer.buffer, buffer.byteOffset);
		let at = 0;
		const write = (opcode, text) => {
			buffer[at] = opcode;
			view.setUint32(at + 1, text.length);
			buffer.set(text, at + 5);
			at += 5 + text.length;
		};
		write(36, new TextEncoder().encode("#two-chunks"));
		write(37, bytes.subarray(0, cut));
		write(29, bytes.subarray(cut));
		buffer[at] = 0;
		vuguRender();
		shown.push(e.textContent);
	}
	e.remove();
	return shown;
})()`

// TestCharactersAcrossBuffers checks that characters remain intact if Vugu's buffer is full and
// Vugu therefore cuts a text within a character.
func TestCharactersAcrossBuffers(t *testing.T) {
	needStage(t)
	p := openPage(t)
	shown := eval[[]string](p, cutScript)
	for cut, text := range shown {
		if want := "\u2248\u202f4 KiB, \u2248"; text != want {
			t.Errorf("text cut at byte %d = %q, want %q", cut, text, want)
		}
	}
	if len(shown) < 16 {
		t.Errorf("%d cuts were tested, want at least 16", len(shown))
	}
}
