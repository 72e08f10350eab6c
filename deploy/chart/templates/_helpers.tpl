{{/* At most 40 characters: what belongs to a function has its name behind it. Of
     longer ones a hash keeps two releases apart. */}}
{{- define "fncache.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride -}}
{{- $full = .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- $full = .Release.Name -}}
{{- end -}}
{{- if gt (len $full) 40 -}}
{{- printf "%s-%s" ($full | trunc 31 | trimSuffix "-") (sha256sum $full | trunc 8) -}}
{{- else -}}
{{- $full -}}
{{- end -}}
{{- end -}}

{{/* Name of what belongs to a function: dict root, name. */}}
{{- define "fncache.nameOf" -}}
{{- $name := printf "%s-%s" (include "fncache.fullname" .root) .name -}}
{{- if gt (len $name) 63 -}}
{{- printf "%s-%s" ($name | trunc 54 | trimSuffix "-") (sha256sum $name | trunc 8) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end -}}

{{/* Labels by which pods are found: they never change. */}}
{{- define "fncache.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | toYaml }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end -}}

{{- define "fncache.labels" -}}
{{ include "fncache.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.customLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The same with an object's own over them: dict root, own. */}}
{{- define "fncache.labelsAnd" -}}
{{- toYaml (mergeOverwrite (include "fncache.labels" .root | fromYaml) (deepCopy (default dict .own))) -}}
{{- end -}}

{{- define "fncache.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* Name of the ServiceAccount of the pods; empty where Crossplane makes one. */}}
{{- define "fncache.serviceAccountName" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if or .Values.serviceAccount.create .Values.imagePullSecrets -}}
{{- include "fncache.fullname" . -}}
{{- end -}}
{{- end -}}

{{/* Bytes of a size as fncache reads it: 256MiB, 256Mi, 64MB, 1024. */}}
{{- define "fncache.bytes" -}}
{{- $text := toString . -}}
{{- $factors := dict "" 1.0 "B" 1.0 "KiB" 1024.0 "MiB" 1048576.0 "GiB" 1073741824.0 "TiB" 1099511627776.0 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "kB" 1e3 "KB" 1e3 "MB" 1e6 "GB" 1e9 "TB" 1e12 -}}
{{- $unit := regexReplaceAll "^[0-9.]+" $text "" -}}
{{- if not (hasKey $factors $unit) -}}
{{- fail (printf "%s is no size such as 256MiB" $text) -}}
{{- end -}}
{{- mulf (regexFind "^[0-9.]+" $text | float64) (get $factors $unit) | floor | int64 -}}
{{- end -}}

{{/* Number of a quantity as Kubernetes reads it: 100m, 2, 512Mi, 1e3. */}}
{{- define "fncache.quantity" -}}
{{- $text := toString . -}}
{{- $factors := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- $number := regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" $text -}}
{{- $unit := trimPrefix $number $text -}}
{{- if or (not $number) (not (hasKey $factors $unit)) -}}
{{- fail (printf "%s is no quantity such as 100m or 512Mi" $text) -}}
{{- end -}}
{{- mulf ($number | float64) (get $factors $unit) -}}
{{- end -}}

{{/* Seconds of a duration such as 1m30s, rounded up. */}}
{{- define "fncache.seconds" -}}
{{- $sum := 0.0 -}}
{{- $factors := dict "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001 "us" 0.000001 "ns" 0.000000001 -}}
{{- range regexFindAll "[0-9.]+(ms|us|ns|h|m|s)" (toString .) -1 -}}
{{- $sum = addf $sum (mulf (regexFind "^[0-9.]+" . | float64) (get $factors (regexReplaceAll "^[0-9.]+" . ""))) -}}
{{- end -}}
{{- ceil $sum | int64 -}}
{{- end -}}

{{/* Settings of a function: those of all, and its own over them. dict root, config.
Helm reads `on` and `off` without quotes as booleans. */}}
{{- define "fncache.config" -}}
{{- $config := mergeOverwrite (deepCopy (default dict .root.Values.config)) (deepCopy (default dict .config)) -}}
{{- if include "fncache.shared" .root }}
{{- $_ := set $config "shared" (dict "timeout" (default "50ms" .root.Values.shared.timeout) "max_entry_bytes" (default "1MiB" .root.Values.shared.maxEntryBytes)) }}
{{- end }}
{{- if kindIs "bool" $config.tune }}{{ $_ := set $config "tune" (ternary "on" "off" $config.tune) }}{{ end -}}
{{- if kindIs "bool" $config.vary }}{{ $_ := set $config "vary" (ternary "on" "off" $config.vary) }}{{ end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* What the chart tells the function, in eight digits: it may answer otherwise
     after a change of that, though its image is the same. Argument: fn. */}}
{{- define "fncache.told" -}}
{{- if or .command .args .env -}}
{{- list .command .args .env | toJson | sha256sum | trunc 8 -}}
{{- end -}}
{{- end -}}

{{/* How long fncache takes to end. Argument: the settings. */}}
{{- define "fncache.drainSeconds" -}}
{{- add (include "fncache.seconds" (default "25s" .drain)) (include "fncache.seconds" (default "0s" .drain_delay)) -}}
{{- end -}}

{{/* Not empty where there is a disk tier, and where there is a shared one. */}}
{{- define "fncache.disk" -}}
{{- if and .Values.functionCache.enabled (not (include "fncache.shared" .)) }}true{{ end -}}
{{- end -}}
{{- define "fncache.shared" -}}
{{- default "" .Values.shared.url -}}
{{- end -}}

{{/* MiB of memory that fncache takes: "Sizing the container" of docs/operating.md,
     with one function. dict root, settings. */}}
{{- define "fncache.memoryMiB" -}}
{{- $cache := default dict .settings.cache -}}
{{- $tier := divf (include "fncache.bytes" (default "256MiB" $cache.memory) | float64) 1048576.0 -}}
{{- $calls := mulf 3.0 .root.Values.sizing.calls (divf (include "fncache.bytes" .root.Values.sizing.callBytes | float64) 1048576.0) -}}
{{- $below := ternary 80.0 (ternary 48.0 0.0 (ne (include "fncache.shared" .root) "")) (eq (include "fncache.disk" .root) "true") -}}
{{- $explain := divf (include "fncache.bytes" (default "16MiB" (default dict .settings.explain).memory) | float64) 1048576.0 -}}
{{- $tune := ternary 16.0 0.0 (eq (default "off" .settings.tune) "on") -}}
{{- addf (mulf 1.2 $tier) 66.0 $below $calls $tune (maxf 0.0 (subf $explain 16.0)) | ceil | int64 -}}
{{- end -}}

{{/* MiB of the disk tier's volume where that is memory, which counts as the
     container's. dict root, settings, pvc. */}}
{{- define "fncache.tmpfsMiB" -}}
{{- if and (include "fncache.disk" .root) (eq (default "" .root.Values.functionCache.medium) "Memory") (not .pvc) -}}
{{- include "fncache.diskMiB" .settings -}}
{{- else -}}
0
{{- end -}}
{{- end -}}

{{/* MiB of the disk tier's volume: a damaged database is kept beside the new
     one, and a trace may be there. */}}
{{- define "fncache.diskMiB" -}}
{{- $cache := default dict .cache -}}
{{- $disk := divf (include "fncache.bytes" (default "4GiB" $cache.disk) | float64) 1048576.0 -}}
{{- $traced := 0.0 -}}
{{- if (default dict .trace).dir -}}
{{- $traced = mulf (divf (include "fncache.bytes" (default "64MiB" .trace.file_size) | float64) 1048576.0) (default 8 .trace.files) -}}
{{- end -}}
{{- addf (mulf 2.4 $disk) $traced 16.0 | ceil | int64 -}}
{{- end -}}

{{/* Keeps the function's container from ending; nothing where fncache drains for
     no time, for Kubernetes before 1.33 refuses to sleep for 0 s. dict root, seconds. */}}
{{- define "fncache.preStop" -}}
{{- if le (int .seconds) 0 -}}
{{- else if eq .root.Values.preStop "sleep" -}}
{{- if semverCompare "<1.30.0-0" .root.Capabilities.KubeVersion.Version -}}
{{- fail "this Kubernetes has no preStop.sleep (1.30 has): set preStop to exec where the functions' images have a `sleep`, else to none" -}}
{{- end -}}
lifecycle:
  preStop:
    sleep:
      seconds: {{ .seconds }}
{{- else if eq .root.Values.preStop "exec" -}}
lifecycle:
  preStop:
    exec:
      command: [sleep, {{ .seconds | toString | quote }}]
{{- end -}}
{{- end -}}

{{/* How many pods a function's Deployment has: its own number, else the one of
     all, either of which may be 0; nothing where that is null. dict root, fn. */}}
{{- define "fncache.replicas" -}}
{{- $own := ternary .fn.replicas .root.Values.replicas (hasKey .fn "replicas") -}}
{{- if not (kindIs "invalid" $own) }}{{ int $own }}{{ end -}}
{{- end -}}

{{/* Where pods go. */}}
{{- define "fncache.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | toYaml }}
{{- end }}
{{- with .Values.runtimeClassName }}
runtimeClassName: {{ . | toYaml }}
{{- end }}
{{- if .Values.hostNetwork }}
hostNetwork: true
{{- end }}
{{- /* Else Kubernetes asks the node's servers, which do not know the function's Service. */}}
{{- $standalone := and (eq .Values.mode "standalone") (default false .Values.hostNetwork) }}
{{- with default (ternary "ClusterFirstWithHostNet" "" $standalone) .Values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- end -}}

{{/* What the container of fncache has in both modes, less name, arguments,
     environment and the mounts of certificates. dict root, settings, pvc. */}}
{{- define "fncache.container" -}}
image: {{ include "fncache.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
ports:
- {name: fncache-admin, containerPort: {{ .root.Values.metrics.port }}, protocol: TCP}
readinessProbe:
  httpGet: {path: /readyz, port: fncache-admin}
  periodSeconds: 2
livenessProbe:
  httpGet: {path: /healthz, port: fncache-admin}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
resources:
  {{- $memory := include "fncache.memoryMiB" . | int64 }}
  {{- $tmpfs := include "fncache.tmpfsMiB" . | int64 }}
  {{- $computed := dict "requests" (dict "cpu" "100m" "memory" (printf "%dMi" (add $memory $tmpfs))) "limits" (dict "memory" (printf "%dMi" (add (div (mul $memory 3) 2) $tmpfs))) }}
  {{- $own := deepCopy (default dict .root.Values.resourcesFncache) }}
  {{- /* Kubernetes refuses a request above its limit. */}}
  {{- range $what, $limit := default dict $own.limits }}
  {{- $asked := get $computed.requests $what }}
  {{- if and $asked (not (hasKey (default dict $own.requests) $what)) (not (kindIs "invalid" $limit)) }}
  {{- if lt (include "fncache.quantity" $limit | float64) (include "fncache.quantity" $asked | float64) }}
  {{- $_ := set $computed.requests $what $limit }}
  {{- end }}
  {{- end }}
  {{- end }}
  {{- $merged := mergeOverwrite $computed $own }}
  {{- /* null takes one away. */}}
  {{- range $kind := list "requests" "limits" }}
  {{- range $what, $quantity := deepCopy (get $merged $kind) }}
  {{- if kindIs "invalid" $quantity }}
  {{- $_ := unset (get $merged $kind) $what }}
  {{- end }}
  {{- end }}
  {{- end }}
  {{- toYaml $merged | nindent 2 }}
{{- with .root.Values.securityContextFncache }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "fncache.arguments" -}}
{{- $every := ternary "[::]" "0.0.0.0" (default false .root.Values.ipv6) -}}
- serve
- --config=/etc/fncache/fncache.yaml
- --listen={{ $every }}:9443
- --admin={{ $every }}:{{ .root.Values.metrics.port }}
{{- if include "fncache.disk" .root }}
- --cache-dir=/cache
{{- end }}
{{- with .root.Values.shared }}
{{- if .url }}
- {{ printf "--shared-url=%s" .url | toYaml }}
- {{ printf "--shared-secret-file=/shared/secret/%s" (default "secret" .secretKey) | toYaml }}
{{- with .username }}
- {{ printf "--shared-username=%s" . | toYaml }}
{{- end }}
{{- if .passwordSecret }}
- {{ printf "--shared-password-file=/shared/password/%s" (default "password" .passwordKey) | toYaml }}
{{- end }}
{{- if .tlsSecret }}
- --shared-tls-dir=/shared/tls
{{- end }}
{{- with .serverName }}
- {{ printf "--shared-server-name=%s" . | toYaml }}
{{- end }}
- {{ printf "--shared-prefix=%s" (default "fncache" .prefix) | toYaml }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "fncache.environment" -}}
# Beside the cache or in a folder of its own: one place for both.
- name: FNCACHE_ADMIN_SOCKET
  value: /run/fncache/admin.sock
{{- range $name, $value := .Values.extraEnvVarsFncache }}
- name: {{ $name | replace "." "_" | toYaml }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "fncache.mounts" -}}
- {name: fncache-config, mountPath: /etc/fncache, readOnly: true}
- {name: fncache-run, mountPath: /run/fncache}
{{- if include "fncache.disk" . }}
- {name: fncache-cache, mountPath: /cache}
{{- end }}
{{- if include "fncache.shared" . }}
- {name: fncache-shared-secret, mountPath: /shared/secret, readOnly: true}
{{- if .Values.shared.passwordSecret }}
- {name: fncache-shared-password, mountPath: /shared/password, readOnly: true}
{{- end }}
{{- if .Values.shared.tlsSecret }}
- {name: fncache-shared-tls, mountPath: /shared/tls, readOnly: true}
{{- end }}
{{- end }}
{{- with .Values.extraVolumeMountsFncache }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* dict root, name, settings, pvc. */}}
{{- define "fncache.volumes" -}}
# The whole folder, not a file of it: a mounted file would not change with the
# ConfigMap.
- name: fncache-config
  configMap:
    name: {{ .name | toYaml }}
- name: fncache-run
  emptyDir: {sizeLimit: 1Mi}
{{- with .root.Values.shared }}
{{- if .url }}
# Folders, too: a rotated password and certificates arrive in the pod.
- name: fncache-shared-secret
  secret: {secretName: {{ .secret | toYaml }}}
{{- with .passwordSecret }}
- name: fncache-shared-password
  secret: {secretName: {{ . | toYaml }}}
{{- end }}
{{- with .tlsSecret }}
- name: fncache-shared-tls
  secret: {secretName: {{ . | toYaml }}}
{{- end }}
{{- end }}
{{- end }}
{{- if include "fncache.disk" .root }}
- name: fncache-cache
  {{- if .pvc }}
  persistentVolumeClaim:
    claimName: {{ .pvc | toYaml }}
  {{- else }}
  {{- with .root.Values.functionCache.sizeLimit }}
  {{- $disk := include "fncache.bytes" (default "4GiB" (default dict $.settings.cache).disk) | float64 }}
  {{- if lt (include "fncache.quantity" . | float64) (mulf 2.2 $disk) }}
  {{- fail (printf "functionCache.sizeLimit: %s is less than 2.2 times config.cache.disk: the pod would be evicted when the cache is full" .) }}
  {{- end }}
  {{- end }}
  emptyDir:
    {{- with .root.Values.functionCache.medium }}
    medium: {{ . }}
    {{- end }}
    sizeLimit: {{ default (printf "%sMi" (include "fncache.diskMiB" .settings)) .root.Values.functionCache.sizeLimit }}
  {{- end }}
{{- end }}
{{- with .root.Values.extraVolumesFncache }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Annotations of pods. */}}
{{- define "fncache.podAnnotations" -}}
{{- if .Values.metrics.enabled }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ .Values.metrics.port | toString | quote }}
prometheus.io/path: /metrics
{{- end }}
{{- with .Values.customAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The runtime configuration of a function with fncache in its pod.
     dict root, fn (a function of the list, or what stands for a registry). */}}
{{- define "fncache.sidecar" -}}
{{- $root := .root -}}
{{- $name := include "fncache.nameOf" (dict "root" $root "name" .fn.name) -}}
{{- $settings := include "fncache.config" (dict "root" $root "config" .fn.config) | fromYaml -}}
{{- $drain := include "fncache.drainSeconds" $settings | int -}}
{{- $replicas := include "fncache.replicas" (dict "root" $root "fn" .fn) -}}
{{- if and .fn.pvc (gt (int $replicas) 1) }}{{ fail (printf "functions: %s: a pvc is for one replica, for one process at a time uses the directory" .fn.name) }}{{ end -}}
{{- if and .fn.pvc (not (include "fncache.disk" $root)) }}{{ fail (printf "functions: %s: a pvc without functionCache.enabled, or with shared.url" .fn.name) }}{{ end -}}
apiVersion: pkg.crossplane.io/v1beta1
kind: DeploymentRuntimeConfig
metadata:
  name: {{ $name | toYaml }}
  labels:
    {{- include "fncache.labels" $root | nindent 4 }}
  {{- with $root.Values.customAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  deploymentTemplate:
    spec:
      {{- with $replicas }}
      replicas: {{ . }}
      {{- end }}
      {{- if not (kindIs "invalid" $root.Values.revisionHistoryLimit) }}
      revisionHistoryLimit: {{ $root.Values.revisionHistoryLimit }}
      {{- end }}
      strategy:
        {{- if .fn.pvc }}
        # A new pod would wait for the volume that the old one has.
        type: Recreate
        {{- else }}
        type: {{ $root.Values.deploymentStrategy }}
        {{- end }}
      # Crossplane writes it, and the schema wants it here.
      selector: {}
      template:
        metadata:
          labels:
            {{- include "fncache.selectorLabels" $root | nindent 12 }}
            {{- with $root.Values.customLabels }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- with include "fncache.podAnnotations" $root | trim }}
          annotations:
            {{- . | nindent 12 }}
          {{- end }}
        spec:
          {{- with include "fncache.serviceAccountName" $root }}
          serviceAccountName: {{ . | toYaml }}
          {{- end }}
          # As long as fncache drains, and 5 s to end.
          terminationGracePeriodSeconds: {{ add $drain 5 }}
          {{- with $root.Values.podSecurityContextFncache }}
          securityContext:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with include "fncache.placement" $root | trim }}
          {{- . | nindent 10 }}
          {{- end }}
          containers:
          # The function: plaintext, reachable from inside the pod only.
          - name: package-runtime
            {{- if .fn.command }}
            command:
              {{- toYaml .fn.command | nindent 14 }}
            {{- else if .fn.python }}
            # Without the variable, which Crossplane always sets, the function has
            # one listener and not two.
            command:
            - /venv/fn/bin/python3
            - -c
            - |
              import os
              os.environ.pop("TLS_SERVER_CERTS_DIR", None)
              from function.main import cli
              cli()
            {{- end }}
            args:
              {{- toYaml (default (list "--insecure" "--address=127.0.0.1:9444") .fn.args) | nindent 14 }}
            {{- with .fn.env }}
            env:
              {{- toYaml . | nindent 14 }}
            {{- end }}
            {{- with include "fncache.preStop" (dict "root" $root "seconds" $drain) }}
            # It ends at SIGTERM at once: let it live for as long as fncache drains.
            {{- . | nindent 12 }}
            {{- end }}
            {{- with default $root.Values.resourcesFunction .fn.resources }}
            resources:
              {{- toYaml . | nindent 14 }}
            {{- end }}
            {{- with $root.Values.securityContextFunction }}
            securityContext:
              {{- toYaml . | nindent 14 }}
            {{- end }}
          - name: fncache
            args:
              {{- include "fncache.arguments" (dict "root" $root) | nindent 14 }}
              - --upstream=127.0.0.1:9444
              {{- with include "fncache.told" .fn }}
              # Another revision, or other arguments or variables of the function:
              # an empty cache.
              - --generation=$(REVISION_NAME)-{{ . }}
              {{- end }}
            env:
              # Crossplane gives these to package-runtime only: read them off the labels.
              - name: FUNCTION_NAME
                valueFrom: {fieldRef: {fieldPath: "metadata.labels['pkg.crossplane.io/function']"}}
              # The generation: another revision starts with an empty cache.
              - name: REVISION_NAME
                valueFrom: {fieldRef: {fieldPath: "metadata.labels['pkg.crossplane.io/revision']"}}
              - name: TLS_SERVER_CERTS_DIR
                value: /tls/server
              {{- include "fncache.environment" $root | nindent 14 }}
            {{- include "fncache.container" (dict "root" $root "settings" $settings "pvc" .fn.pvc) | nindent 12 }}
            volumeMounts:
              # A volume that Crossplane adds.
              - {name: tls-server-certs, mountPath: /tls/server, readOnly: true}
              {{- include "fncache.mounts" $root | nindent 14 }}
          volumes:
            {{- include "fncache.volumes" (dict "root" $root "name" $name "settings" $settings "pvc" .fn.pvc) | nindent 12 }}
{{- end -}}

{{/* The file that fncache reads. dict root, fn. */}}
{{- define "fncache.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "fncache.nameOf" (dict "root" .root "name" .fn.name) | toYaml }}
  namespace: {{ .root.Release.Namespace | toYaml }}
  labels:
    {{- include "fncache.labels" .root | nindent 4 }}
  {{- with .root.Values.customAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
data:
  fncache.yaml: |
    {{- include "fncache.config" (dict "root" .root "config" .fn.config) | nindent 4 }}
{{- end -}}
