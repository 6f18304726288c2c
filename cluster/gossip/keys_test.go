package gossip_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster/gossip"
)

func key(letter byte) []byte { return bytes.Repeat([]byte{letter}, 32) }

// give makes the keys of a node, or changes them.
func (p *party) give(n int, keys ...[]byte) {
	p.t.Helper()
	var err error
	if p.keys[n] == nil {
		p.keys[n], err = gossip.NewKeyring(keys)
	} else {
		err = p.keys[n].Set(keys)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestKeysAreRotatedInThreeSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		for n := 1; n <= 3; n++ {
			p.give(n, key('a'))
			p.come(n, "blue", 1, 2, 3)
		}
		time.Sleep(5 * time.Second)
		p.expect("with the first key", 1, "n2 n3")
		for _, step := range [][][]byte{{key('a'), key('b')}, {key('b'), key('a')}, {key('b')}} {
			for n := 1; n <= 3; n++ {
				p.give(n, step...)
				time.Sleep(time.Minute) // while the others have the keys of the step before
				p.expect("during a step", 1, "n2 n3")
				p.expect("during a step", 3, "n1 n2")
			}
		}
		p.give(4, key('a'))
		p.come(4, "blue", 1)
		p.give(5, key('b'))
		p.come(5, "blue", 1)
		time.Sleep(time.Minute)
		p.expect("after a visit with the old key and one with the new", 1, "n2 n3 n5")
		p.expect("with the old key", 4, "")
	})
}

func TestPlainTextIsNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		for n := 1; n <= 2; n++ {
			p.give(n, key('a'))
			p.come(n, "blue", 1, 2, 3)
		}
		p.come(3, "blue", 1, 2)
		time.Sleep(5 * time.Minute)
		p.expect("beside one who speaks plain text", 1, "n2")
		p.expect("in plain text", 3, "")
		if !strings.Contains(p.log.String(), "encrypt") {
			t.Errorf("nobody says why:\n%s", p.log.String())
		}
	})
}

func TestAKeyringTakesAnyNewKeys(t *testing.T) {
	ring, err := gossip.NewKeyring([][]byte{key('a'), key('b'), key('c')})
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range []string{"cab", "b", "def", "fb", "abcdef", "ace"} {
		var list [][]byte
		for _, letter := range []byte(keys) {
			list = append(list, key(letter))
		}
		if err := ring.Set(list); err != nil {
			t.Fatal(err)
		}
		if got := ring.Keys(); !bytes.Equal(bytes.Join(got, nil), bytes.Join(list, nil)) {
			t.Errorf("after %q it holds %q", keys, got)
		}
	}
	for _, keys := range [][][]byte{nil, {{1, 2, 3}}, {key('x'), {1}}} {
		if err := ring.Set(keys); err == nil || len(ring.Keys()) != 3 {
			t.Errorf("%x are taken: %v", keys, err)
		}
	}
}

// TestKeysComeOneNodeAfterTheOther: first all get a key and go on in plain text, then they encrypt, then they hear nothing else.
// At each step the nodes of the step before still hear them, and at the last a bomb in plain text is still refused.
func TestKeysComeOneNodeAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParty(t)
		for n := 1; n <= 3; n++ {
			p.come(n, "blue", 1, 2, 3)
		}
		time.Sleep(5 * time.Second)
		for _, step := range []struct{ hear, send bool }{{true, true}, {true, false}, {false, false}} {
			for n := 1; n <= 3; n++ {
				p.crash(n)
				p.keys[n] = nil
				p.give(n, key('a'))
				p.keys[n].AllowPlain(step.hear, step.send)
				time.Sleep(20 * time.Second) // the others take it for dead
				p.come(n, "blue", 1, 2, 3)
				time.Sleep(time.Minute)
				p.expect("during a step", 1, "n2 n3")
				p.expect("during a step", 3, "n1 n2")
			}
		}
		p.come(4, "blue", 1)
		time.Sleep(time.Minute)
		p.expect("after a visit without a key", 1, "n2 n3")
	})
}
