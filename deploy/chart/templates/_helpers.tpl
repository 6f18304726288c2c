{{- define "quorate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "quorate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "quorate.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "quorate.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "quorate.headless" -}}
{{- include "quorate.fullname" . }}-headless
{{- end -}}

{{/* The domain of the pods' names. */}}
{{- define "quorate.domain" -}}
{{- printf "%s.%s.svc.%s" (include "quorate.headless" .) .Release.Namespace .Values.clusterDomain -}}
{{- end -}}

{{- define "quorate.selector" -}}
app.kubernetes.io/name: {{ include "quorate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "quorate.labels" -}}
{{ include "quorate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "quorate.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "quorate.tlsSecret" -}}
{{- default (printf "%s-tls" (include "quorate.fullname" .)) .Values.tls.existingSecret -}}
{{- end -}}

{{- define "quorate.keysSecret" -}}
{{- default (printf "%s-keys" (include "quorate.fullname" .)) .Values.keys.existingSecret -}}
{{- end -}}

{{/* The secret that has the certificate of the authority. */}}
{{- define "quorate.authoritySecret" -}}
{{- if .Values.tls.certManager.enabled -}}
{{- include "quorate.fullname" . }}-0-tls
{{- else -}}
{{- include "quorate.tlsSecret" . -}}
{{- end -}}
{{- end -}}

{{/* OpenShift gives the pods of each namespace ids of its own, and refuses pods that name others. */}}
{{- define "quorate.podSecurity" -}}
{{- $choice := default "auto" .Values.idsFromPlatform -}}
{{- $assigned := eq $choice "always" -}}
{{- if and (eq $choice "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1") -}}
{{- $assigned = true -}}
{{- end -}}
runAsNonRoot: true
{{- if not $assigned }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "quorate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* What a job of this chart needs to call the servers: environment, mounts and volumes. */}}
{{- define "quorate.clientEnvironment" -}}
- {name: QUORATE_SERVER, value: "https://{{ include "quorate.fullname" .root }}.{{ .root.Release.Namespace }}.svc:7101"}
- {name: QUORATE_TLS_CA, value: /etc/quorate/tls/ca.crt}
{{- if .token.name }}
- {name: QUORATE_TOKEN_FILE, value: /etc/quorate/token/{{ .token.key }}}
{{- end }}
{{- end -}}

{{- define "quorate.clientMounts" -}}
- {name: authority, mountPath: /etc/quorate/tls, readOnly: true}
{{- if .token.name }}
- {name: token, mountPath: /etc/quorate/token, readOnly: true}
{{- end }}
{{- end -}}

{{- define "quorate.clientVolumes" -}}
- name: authority
  secret:
    secretName: {{ include "quorate.authoritySecret" .root }}
    items: [{key: ca.crt, path: ca.crt}]
{{- if .token.name }}
- name: token
  secret:
    secretName: {{ .token.name }}
    defaultMode: 0440
    items: [{key: {{ .token.key }}, path: {{ .token.key }}}]
{{- end }}
{{- end -}}
