package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster/gossip"
	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/pki"
	"github.com/quorate/quorate/rpc"
)

// security is what a server proves itself with, and asks of others. Its zero value is plain text.
type security struct {
	certificates *pki.Store
	auth         pki.ClientAuth
	keys         *gossip.Keyring
	log          hclog.Logger
}

// certificates are the files of the settings.
func (s settings) certificates() pki.Files {
	return pki.Files{CA: s.TLSCA, Cert: s.TLSCert, Key: s.TLSKey}
}

// checkSecurity refuses plain text where strangers could read it, unless the operator insists.
func (s settings) checkSecurity() (faults []error) {
	if err := s.certificates().Complete(); err != nil {
		faults = append(faults, err)
	}
	if err := pki.ClientAuth(s.TLSClientAuth).Check(); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, s.checkGossipKeys()...)
	if err := s.browsers().Check(); err != nil {
		faults = append(faults, err)
	}
	if s.Insecure {
		return faults
	}
	tlsOff := s.certificates().Empty()
	for _, plain := range []struct {
		key, address string
		is           bool
		way          string
	}{
		{"http-addr", s.HTTPAddr, tlsOff, plainTLS},
		{"raft-addr", s.RaftAddr, tlsOff, plainTLS},
		{"boskos-addr", s.BoskosAddr, tlsOff, plainTLS},
		{"pprof-addr", s.PprofAddr, true, "give it an address of this machine alone"},
	} {
		if plain.is && plain.address != "" && !onLoopback(plain.address) {
			faults = append(faults, fmt.Errorf("%s is %q, where other machines would be served in plain text: %s, listen on loopback, or "+
				"set insecure if the network keeps strangers out", plain.key, plain.address, plain.way))
		}
	}
	return faults
}

// checkGossipKeys refuses gossip without keys where other machines could take part, whatever else may be plain text: it needs
// neither certificates nor an authority, and anyone who reaches it can say anything in the name of any node.
func (s settings) checkGossipKeys() (faults []error) {
	switch without := s.GossipKeysFile == ""; {
	case without && (!s.GossipHear || !s.GossipSend):
		faults = append(faults, errors.New("gossip-verify-incoming and gossip-verify-outgoing are about what is heard and sent besides "+
			"encrypted gossip: set gossip-keys-file, or leave them true"))
	case !without && s.GossipHear && !s.GossipSend:
		faults = append(faults, errors.New("gossip-verify-outgoing is false and gossip-verify-incoming is true: this node would send what "+
			"it does not hear; set both to false, and on all nodes first outgoing and then incoming back to true"))
	}
	if s.GossipKeysFile == "" && s.GossipAddr != "" && !onLoopback(s.GossipAddr) {
		faults = append(faults, fmt.Errorf("gossip-addr is %q, where other machines could gossip without a key, with insecure too: write a key "+
			"with \"(umask 077; quorate tls gossip-key > gossip.keys)\", give the file to all nodes and set gossip-keys-file, or listen on "+
			"loopback", s.GossipAddr))
	}
	return faults
}

// plainTLS is the way out for what certificates encrypt.
const plainTLS = `set tls-ca, tls-cert and tls-key ("quorate tls init" makes them)`

// browsers say which web pages may call. Where callers are not asked who they are, because only this machine is served, the
// host that is called must be this machine.
func (s settings) browsers() rpc.Browsers {
	b := rpc.Browsers{Origins: s.CORSOrigin, LoopbackOnly: s.certificates().Empty() && !s.Insecure}
	if host, _, err := net.SplitHostPort(s.AdvertiseHTTP); err == nil {
		b.Hosts = []string{strings.ToLower(host)}
	}
	return b
}

// onLoopback tells whether only this machine can reach an address.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // it is no address at all, and that is said elsewhere
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// openSecurity reads the files that the settings name.
func openSecurity(s settings, logger hclog.Logger) (*security, error) {
	sec := &security{auth: pki.ClientAuth(s.TLSClientAuth), log: logger}
	if s.GossipKeysFile != "" {
		keys, err := pki.LoadGossipKeys(s.GossipKeysFile)
		if err != nil {
			return nil, fmt.Errorf("gossip-keys-file: %w", err)
		}
		if sec.keys, err = gossip.NewKeyring(keys); err != nil {
			return nil, err
		}
		sec.keys.AllowPlain(!s.GossipHear, !s.GossipSend)
		if !s.GossipHear {
			logger.Warn("gossip in plain text is heard too, so anyone who reaches it can take part; once all nodes have a key, set " +
				"gossip-verify-outgoing and then gossip-verify-incoming to true")
		}
	}
	if files := s.certificates(); !files.Empty() {
		store, err := pki.Open(files, s.ClusterName, s.ID, logger.Named("tls"))
		if err != nil {
			return nil, fmt.Errorf("tls-cert: %w", err)
		}
		sec.certificates = store
	}
	return sec, nil
}

// forPeers is what the node below is told.
func (s *security) forPeers() host.Security {
	if s.certificates == nil {
		return host.Security{Keys: s.keys}
	}
	return host.Security{
		Accept: s.certificates.Accept(), Dial: s.certificates.Dial, Keys: s.keys,
		Version: s.certificates.Version, Identify: s.certificates.Identify,
	}
}

// forCalls is what the API is told.
func (s *security) forCalls() rpc.Security {
	if s.certificates == nil {
		return rpc.Security{}
	}
	return rpc.Security{
		Dial: s.certificates.Dial, NodeOf: s.certificates.NodeOf, Version: s.certificates.Version,
		CheckClient: s.certificates.CheckClient(s.auth),
	}
}

// listener is for clients.
func (s *security) listener(plain net.Listener) net.Listener {
	if s.certificates == nil || plain == nil {
		return plain
	}
	return tls.NewListener(plain, s.certificates.API(s.auth))
}

// url is where a listener for clients is.
func (s *security) url(l net.Listener) string {
	scheme := "http"
	if s.certificates != nil {
		scheme = "https"
	}
	return scheme + "://" + l.Addr().String()
}

// follow takes renewed certificates until it is told to stop.
func (s *security) follow() (stop func()) {
	if s.certificates == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.certificates.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// steps are what SIGHUP reads again.
func (s *security) steps() []reloadStep {
	return []reloadStep{
		{"certificates", func(settings) error {
			if s.certificates == nil {
				return nil
			}
			return s.certificates.Reload()
		}},
		{"gossip-keys-file", func(now settings) error {
			if s.keys == nil {
				return nil
			}
			keys, err := pki.LoadGossipKeys(now.GossipKeysFile)
			if err != nil {
				return err
			}
			if err := s.keys.Set(keys); err != nil {
				return err
			}
			s.log.Info("keys of gossip read again", "keys", len(keys))
			return nil
		}},
	}
}

// measure shows when the certificates end and how often they were read again.
func (s *security) measure(to prometheus.Registerer) error {
	if s.certificates == nil {
		return nil
	}
	ends := func(which string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quorate_certificate_expiry_seconds", Help: "When a certificate ends, in seconds since 1970.",
			ConstLabels: prometheus.Labels{"certificate": which},
		}, value)
	}
	reloads := func(result string, value func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "quorate_certificate_reloads_total", Help: "Times that changed certificates were read, by what became of them.",
			ConstLabels: prometheus.Labels{"result": result},
		}, value)
	}
	err := errors.Join(
		to.Register(ends("node", func() float64 { own, _ := s.certificates.Ends(); return float64(own.Unix()) })),
		to.Register(ends("authority", func() float64 { _, ca := s.certificates.Ends(); return float64(ca.Unix()) })),
		to.Register(reloads("used", func() float64 { used, _ := s.certificates.Reloads(); return float64(used) })),
		to.Register(reloads("refused", func() float64 { _, refused := s.certificates.Reloads(); return float64(refused) })),
	)
	if err != nil {
		return fmt.Errorf("registering the metrics of certificates: %w", err)
	}
	return nil
}
