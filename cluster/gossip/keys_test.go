package gossip_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster/gossip"
)

func testKey(letter byte) []byte { return bytes.Repeat([]byte{letter}, 32) }

func (p *testNetwork) setKeys(n int, keys ...[]byte) {
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
		p := newTestNetwork(t)
		for n := 1; n <= 3; n++ {
			p.setKeys(n, testKey('a'))
			p.startNode(n, "blue", 1, 2, 3)
		}
		time.Sleep(5 * time.Second)
		p.expectPeers("with the first key", 1, "n2 n3")
		for _, step := range [][][]byte{{testKey('a'), testKey('b')}, {testKey('b'), testKey('a')}, {testKey('b')}} {
			for n := 1; n <= 3; n++ {
				p.setKeys(n, step...)
				time.Sleep(time.Minute) // while the others have the keys of the step before
				p.expectPeers("during a step", 1, "n2 n3")
				p.expectPeers("during a step", 3, "n1 n2")
			}
		}
		p.setKeys(4, testKey('a'))
		p.startNode(4, "blue", 1)
		p.setKeys(5, testKey('b'))
		p.startNode(5, "blue", 1)
		time.Sleep(time.Minute)
		p.expectPeers("after a visit with the old key and one with the new", 1, "n2 n3 n5")
		p.expectPeers("with the old key", 4, "")
	})
}

func TestPlainTextIsNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		for n := 1; n <= 2; n++ {
			p.setKeys(n, testKey('a'))
			p.startNode(n, "blue", 1, 2, 3)
		}
		p.startNode(3, "blue", 1, 2)
		time.Sleep(5 * time.Minute)
		p.expectPeers("with a peer in plain text", 1, "n2")
		p.expectPeers("in plain text", 3, "")
		if !strings.Contains(p.log.String(), "encrypt") {
			t.Errorf("the log does not say why:\n%s", p.log.String())
		}
	})
}

func TestAKeyringTakesAnyNewKeys(t *testing.T) {
	ring, err := gossip.NewKeyring([][]byte{testKey('a'), testKey('b'), testKey('c')})
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range []string{"cab", "b", "def", "fb", "abcdef", "ace"} {
		var list [][]byte
		for _, letter := range []byte(keys) {
			list = append(list, testKey(letter))
		}
		if err := ring.Set(list); err != nil {
			t.Fatal(err)
		}
		if got := ring.Keys(); !bytes.Equal(bytes.Join(got, nil), bytes.Join(list, nil)) {
			t.Errorf("after %q it holds %q", keys, got)
		}
	}
	for _, keys := range [][][]byte{nil, {{1, 2, 3}}, {testKey('x'), {1}}} {
		if err := ring.Set(keys); err == nil || len(ring.Keys()) != 3 {
			t.Errorf("%x are taken: %v", keys, err)
		}
	}
}

// TestKeysComeOneNodeAfterTheOther: first all nodes get a key and continue in plain text, then they encrypt, then they
// accept nothing else. At each step the nodes still at the previous step accept their messages, and at the last step a
// decompression bomb in plain text is still refused.
func TestKeysComeOneNodeAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestNetwork(t)
		for n := 1; n <= 3; n++ {
			p.startNode(n, "blue", 1, 2, 3)
		}
		time.Sleep(5 * time.Second)
		for _, step := range []struct{ hear, send bool }{{true, true}, {true, false}, {false, false}} {
			for n := 1; n <= 3; n++ {
				p.crashNode(n)
				p.keys[n] = nil
				p.setKeys(n, testKey('a'))
				p.keys[n].AllowPlain(step.hear, step.send)
				time.Sleep(20 * time.Second) // the others take it for dead
				p.startNode(n, "blue", 1, 2, 3)
				time.Sleep(time.Minute)
				p.expectPeers("during a step", 1, "n2 n3")
				p.expectPeers("during a step", 3, "n1 n2")
			}
		}
		p.startNode(4, "blue", 1)
		time.Sleep(time.Minute)
		p.expectPeers("after a visit without a key", 1, "n2 n3")
	})
}
