package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster/gossip"
	"github.com/quorate/quorate/cluster/host"
	"github.com/quorate/quorate/internal/pki"
	"github.com/quorate/quorate/rpc"
)

// security is how a server proves who it is and checks who calls. Its zero value is plain text.
type security struct {
	certificates *pki.Store
	auth         pki.ClientAuth
	keys         *gossip.Keyring
	log          hclog.Logger
}

func (s Settings) tlsFiles() pki.Files {
	return pki.Files{CA: s.TLSCA, ClientCA: s.TLSClientCA, Cert: s.TLSCert, Key: s.TLSKey}
}

// checkSecurity refuses plain text on addresses that other machines can reach, unless insecure allows it.
func (s Settings) checkSecurity() (faults []error) {
	if err := s.tlsFiles().Complete(); err != nil {
		faults = append(faults, err)
	}
	if err := pki.ClientAuth(s.TLSClientAuth).Check(); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, s.checkGossipKeys()...)
	if err := s.browserPolicy().Check(); err != nil {
		faults = append(faults, err)
	}
	if s.Insecure {
		return faults
	}
	tlsOff := s.tlsFiles().Empty()
	for _, plain := range []struct {
		key, address string
		isPlain      bool
		way          string
	}{
		{"http-addr", s.HTTPAddr, tlsOff, plainTLS},
		{"raft-addr", s.RaftAddr, tlsOff, plainTLS},
		{"the address of boskos in front-ends", s.boskosAddr(), tlsOff, plainTLS},
		// metrics-addr is not among them: the setting is for plain text (docs/adr/0113-monitoring-has-its-own-address.md).
		{"pprof-addr", s.PprofAddr, true, "give it an address of this machine alone"},
	} {
		if plain.isPlain && plain.address != "" && !IsLoopback(plain.address) {
			faults = append(
				faults, fmt.Errorf("%s is %q, where other machines would be served in plain text: %s, listen "+
					"on loopback, "+
					"or set insecure if the network keeps strangers out", plain.key, plain.address, plain.way))
		}
	}
	return faults
}

// checkGossipKeys refuses gossip without keys on addresses that other machines can reach, also if insecure allows
// plain text elsewhere: keys need no authority, and without them any machine could send messages in the name of any
// node.
func (s Settings) checkGossipKeys() (faults []error) {
	switch without := s.GossipKeysFile == ""; {
	case without && (!s.GossipHear || !s.GossipSend):
		faults = append(faults, errors.New("gossip-verify-incoming and gossip-verify-outgoing are about what is heard "+
			"and sent besides "+
			"encrypted gossip: set gossip-keys-file, or leave them true"))
	case !without && s.GossipHear && !s.GossipSend:
		faults = append(faults, errors.New("gossip-verify-outgoing is false and gossip-verify-incoming is true: this "+
			"node would send what "+
			"it does not hear; set both to false, and on all nodes first outgoing and then incoming back to true"))
	}
	if s.GossipKeysFile == "" && s.GossipAddr != "" && !IsLoopback(s.GossipAddr) {
		faults = append(faults, fmt.Errorf("gossip-addr is %q, where other machines could gossip without a key, with "+
			"insecure too: write a key "+
			"with \"(umask 077; head -c 32 /dev/urandom | base64 > gossip.keys)\", give the file to all nodes and set "+
			"gossip-keys-file, or listen on "+
			"loopback", s.GossipAddr))
	}
	return faults
}

// plainTLS is the remedy for addresses that certificates can encrypt.
const plainTLS = `set tls-ca, tls-cert and tls-key ("quorate tls create" makes them)`

// browserPolicy returns which web pages may call. A server without certificates serves only this machine and does not
// authenticate callers, so the host that a browser calls must then be this machine.
func (s Settings) browserPolicy() rpc.Browsers {
	b := rpc.Browsers{Origins: s.CORSOrigin, LoopbackOnly: s.tlsFiles().Empty() && !s.Insecure}
	if host, _, err := net.SplitHostPort(s.AdvertiseHTTP); err == nil {
		b.Hosts = []string{strings.ToLower(host)}
	}
	return b
}

// IsLoopback reports whether only this machine can reach an address.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // not an address, which checkAddresses reports
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func openSecurity(s Settings, logger hclog.Logger) (*security, error) {
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
			logger.Warn("gossip in plain text is heard too, so anyone who reaches it can take part; once " +
				"all nodes have " +
				"a key, set " +
				"gossip-verify-outgoing and then gossip-verify-incoming to true")
		}
	}
	if files := s.tlsFiles(); !files.Empty() {
		store, err := pki.Open(files, s.ClusterName, s.ID, logger.Named("tls"))
		if err != nil {
			return nil, fmt.Errorf("tls-cert: %w", err)
		}
		sec.certificates = store
	}
	return sec, nil
}

func (s *security) peerSecurity() host.Security {
	if s.certificates == nil {
		return host.Security{Keys: s.keys}
	}
	return host.Security{
		Accept: s.certificates.Accept(), Dial: s.certificates.Dial, Keys: s.keys,
		Version: s.certificates.Version, Identify: s.certificates.Identify,
	}
}

func (s *security) apiSecurity() rpc.Security {
	if s.certificates == nil {
		return rpc.Security{}
	}
	return rpc.Security{
		Dial: s.certificates.Dial, NodeOf: s.certificates.NodeOf, Version: s.certificates.Version,
		CheckClient: s.certificates.CheckClient(s.auth), ClientChain: s.certificates.ProvedChain(s.auth),
		ClientRoots: s.certificates.ClientRoots, ClientRequired: s.auth == pki.AuthRequire,
	}
}

func (s *security) certificateEnds() func() (own, authority time.Time) {
	if s.certificates == nil {
		return nil
	}
	return s.certificates.Ends
}

func (s *security) encryptListener(plain net.Listener) net.Listener {
	if s.certificates == nil || plain == nil {
		return plain
	}
	return tls.NewListener(plain, s.certificates.API(s.auth))
}

func (s *security) listenerURL(l net.Listener) string {
	scheme := "http"
	if s.certificates != nil {
		scheme = "https"
	}
	return scheme + "://" + l.Addr().String()
}

func (s *security) startRenewal() (stop func()) {
	if s.certificates == nil {
		return func() {}
	}
	return startLoop(s.certificates.Run)
}

// reloadSteps are the files that SIGHUP reads again.
func (s *security) reloadSteps() []reloadStep {
	return []reloadStep{
		{"certificates", func(Settings) error {
			if s.certificates == nil {
				return nil
			}
			return s.certificates.Reload()
		}},
		{"gossip-keys-file", func(now Settings) error {
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

func (s *security) registerMetrics(to prometheus.Registerer) error {
	if s.certificates == nil {
		return nil
	}
	ends := func(which string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quorate_certificate_expiry_timestamp_seconds", Help: "When a certificate ends, in seconds since 1970.",
			ConstLabels: prometheus.Labels{"certificate": which},
		}, value)
	}
	reloads := func(outcome string, value func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "quorate_certificate_reloads_total",
			Help:        "Times that changed certificates were read, by outcome: used or refused.",
			ConstLabels: prometheus.Labels{"outcome": outcome},
		}, value)
	}
	err := errors.Join(
		to.Register(ends("member", func() float64 { own, _ := s.certificates.Ends(); return float64(own.Unix()) })),
		to.Register(ends("authority", func() float64 { _, ca := s.certificates.Ends(); return float64(ca.Unix()) })),
		to.Register(reloads("used", func() float64 { used, _ := s.certificates.Reloads(); return float64(used) })),
		to.Register(reloads(
			"refused", func() float64 { _, refused := s.certificates.Reloads(); return float64(refused) })),
	)
	if err != nil {
		return fmt.Errorf("registering the metrics of certificates: %w", err)
	}
	return nil
}
