// Clients of the services of the node that served this page. They call nothing else.
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { AccessService } from "#gen/admin/access_pb";
import { ActivityService } from "#gen/v1beta1/activity_pb";
import { AllocationService } from "#gen/allocation_pb";
import { AuditService } from "#gen/admin/audit_pb";
import { ChangeService } from "#gen/change_pb";
import { ClusterService } from "#gen/admin/cluster_pb";
import { ConfigurationService } from "#gen/admin/configuration_pb";
import { CordonService } from "#gen/admin/cordon_pb";
import { IdentityService } from "#gen/access_pb";
import { EventService } from "#gen/event_pb";
import { ItemService } from "#gen/item_pb";
import { LimitRequestService } from "#gen/v1beta1/limit_request_pb";
import { TreeService } from "#gen/tree_pb";
import { token } from "./session";

const authenticate: Interceptor = (next) => (request) => {
  if (token.value) request.header.set("Authorization", `Bearer ${token.value}`);
  return next(request);
};

const transport = createConnectTransport({
  baseUrl: location.origin,
  useBinaryFormat: true,
  interceptors: [authenticate],
  defaultTimeoutMs: 20_000,
});

/** Clients of the services that the page uses. */
export const api = {
  access: createClient(AccessService, transport),
  activity: createClient(ActivityService, transport),
  allocations: createClient(AllocationService, transport),
  audit: createClient(AuditService, transport),
  changes: createClient(ChangeService, transport),
  cluster: createClient(ClusterService, transport),
  configuration: createClient(ConfigurationService, transport),
  cordons: createClient(CordonService, transport),
  events: createClient(EventService, transport),
  identity: createClient(IdentityService, transport),
  items: createClient(ItemService, transport),
  limitRequests: createClient(LimitRequestService, transport),
  trees: createClient(TreeService, transport),
};

/** Whether the page offers changes: the setting ui of the server is "write". */
export const offersChanges =
  document.querySelector<HTMLMetaElement>('meta[name="quorate-mode"]')?.content === "write";
