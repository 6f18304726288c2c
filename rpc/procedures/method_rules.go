package procedures

import "github.com/quorate/quorate/internal/access"

// methodRules says who may call each method, by service. It is no part of the public schema: CanI tells a caller what
// it may do, and docs/access.md tells people.
var methodRules = map[string]map[string]Rule{
	"quorate.admin.v1.AccessService": {
		"AllowCredential":        {ScopeCluster, access.AccessManage},
		"Bootstrap":              {ScopePublic, 0},
		"CreateAccount":          {ScopeCluster, access.AccessManage},
		"CreateToken":            {ScopeCluster, access.AccessManage},
		"DeleteAccount":          {ScopeCluster, access.AccessManage},
		"GetGuardReport":         {ScopeCluster, access.AccessRead},
		"ListAccounts":           {ScopeCluster, access.AccessRead},
		"ListRefusedCredentials": {ScopeCluster, access.AccessRead},
		"ListTokens":             {ScopeCluster, access.AccessRead},
		"RefuseCredential":       {ScopeCluster, access.AccessManage},
		"RevokeToken":            {ScopeCluster, access.AccessManage},
		"RotateToken":            {ScopeLedger, access.AccessManage},
		"SetAccessMode":          {ScopeCluster, access.AccessManage},
		"UpdateAccount":          {ScopeCluster, access.AccessManage},
		"WhoCan":                 {ScopeAnswer, access.AccessRead},
	},
	"quorate.admin.v1.AuditService": {
		"ListRecords": {ScopeCluster, access.AuditRead},
	},
	"quorate.admin.v1.ClusterService": {
		"Checkpoint":     {ScopeCluster, access.ClusterOperate},
		"DemoteMember":   {ScopeCluster, access.ClusterOperate},
		"GetLevel":       {ScopeCluster, access.ClusterRead},
		"GetStatus":      {ScopeAnswer, access.ClusterRead},
		"JoinMember":     {ScopeCluster, access.ClusterOperate},
		"ListMembers":    {ScopeAnswer, access.ClusterRead},
		"PromoteMember":  {ScopeCluster, access.ClusterOperate},
		"RaiseLevel":     {ScopeCluster, access.ClusterOperate},
		"RemoveMember":   {ScopeCluster, access.ClusterOperate},
		"TransferLeader": {ScopeCluster, access.ClusterOperate},
	},
	"quorate.admin.v1.ConfigurationService": {
		"GetConfiguration": {ScopeAnswer, access.ConfigRead},
		"ListRevisions":    {ScopeAnswer, access.ConfigRead},
		"ParseManifest":    {ScopeAuthenticated, 0},
		"RollBack":         {ScopeLedger, 0},
	},
	"quorate.admin.v1.CordonService": {
		"CordonNode":   {ScopeLedger, access.NodesCordon},
		"ListCordons":  {ScopeAnswer, access.UsageRead},
		"UncordonNode": {ScopeLedger, access.NodesCordon},
	},
	"quorate.admin.v1.DebugService": {
		"GetDiagnostics": {ScopeCluster, access.ClusterDebug},
	},
	"quorate.admin.v1.SnapshotService": {
		"Restore": {ScopeCluster, access.SnapshotRestore},
		"Save":    {ScopeCluster, access.SnapshotSave},
	},
	"quorate.peer.v1.PeerService": {
		"GetStanding": {ScopeNode, 0},
		"Notify":      {ScopeNode, 0},
		"ReadIndex":   {ScopeNode, 0},
		"RelayCalls":  {ScopeNode, 0},
	},
	"quorate.v1.AllocationService": {
		"Allocate":        {ScopeLedger, access.Hold},
		"AllocateStream":  {ScopeLedger, access.Hold},
		"BatchAllocate":   {ScopeLedger, access.Hold},
		"BatchRelease":    {ScopeLedger, access.Hold},
		"BatchRenew":      {ScopeLedger, access.Hold},
		"Cancel":          {ScopeLedger, access.Hold},
		"Confirm":         {ScopeLedger, access.Hold},
		"Explain":         {ScopeAnswer, access.Hold},
		"GetAllocation":   {ScopeAnswer, access.HoldersRead},
		"ListAllocations": {ScopeAnswer, access.HoldersRead},
		"ListWaiting":     {ScopeAnswer, access.HoldersRead},
		"Release":         {ScopeLedger, access.Hold},
		"Renew":           {ScopeLedger, access.Hold},
		"Resize":          {ScopeLedger, access.Hold},
		"Split":           {ScopeLedger, access.Hold},
		"Transfer":        {ScopeLedger, access.Hold},
	},
	"quorate.v1.ChangeService": {
		"WatchChanges": {ScopeAnswer, access.UsageRead},
	},
	"quorate.v1.EventService": {
		"ListEvents":  {ScopeAnswer, access.HoldersRead},
		"WatchEvents": {ScopeAnswer, access.HoldersRead},
	},
	"quorate.v1.IdentityService": {
		"CanI":   {ScopePublic, 0},
		"WhoAmI": {ScopePublic, 0},
	},
	"quorate.v1.ItemService": {
		"CountItems":  {ScopeAnswer, access.UsageRead},
		"ListItems":   {ScopeAnswer, access.UsageRead},
		"ResetItems":  {ScopeLedger, access.ItemsReset},
		"UpdateItems": {ScopeLedger, access.ItemsClean},
	},
	"quorate.v1.TreeService": {
		"ApplyTrees":           {ScopeLedger, 0},
		"CancelScheduledLimit": {ScopeLedger, access.LimitsSet},
		"DeleteTree":           {ScopeLedger, access.TreeCreate},
		"GetTree":              {ScopeAnswer, access.ConfigRead},
		"GetUsage":             {ScopeAnswer, access.UsageRead},
		"ListPrincipals":       {ScopeAnswer, access.UsageRead},
		"ListScheduledLimits":  {ScopeAnswer, access.ConfigRead},
		"ListTrees":            {ScopeAnswer, access.ConfigRead},
		"MoveNode":             {ScopeLedger, access.NodesManage},
		"ScheduleLimits":       {ScopeLedger, access.LimitsSet},
		"SetLimits":            {ScopeLedger, access.LimitsSet},
	},
	"quorate.v1beta1.ActivityService": {
		"GetActivity": {ScopeAnswer, access.UsageRead},
	},
	"quorate.v1beta1.LimitRequestService": {
		"ApproveRequest":  {ScopeLedger, access.LimitsSet},
		"ListRequests":    {ScopeAnswer, access.LimitsSet},
		"RejectRequest":   {ScopeLedger, access.LimitsSet},
		"RequestLimits":   {ScopeLedger, access.LimitsRequest},
		"WithdrawRequest": {ScopeLedger, 0},
	},
	"quorate.v1beta1.WebhookService": {
		"ListWebhooks":  {ScopeAnswer, access.AuditRead},
		"RemoveWebhook": {ScopeLedger, access.AccessManage},
		"ResumeWebhook": {ScopeLedger, access.AccessManage},
		"SetWebhook":    {ScopeLedger, access.AccessManage},
	},
}
