// Clients of the services of the node that served this page. They call nothing else.
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { AccessService } from "#gen/access_pb";
import { ActivityService } from "#gen/activity_pb";
import { AllocationService } from "#gen/allocation_pb";
import { AuditService } from "#gen/audit_pb";
import { ChangeService } from "#gen/change_pb";
import { ClusterService } from "#gen/cluster_pb";
import { ItemService } from "#gen/item_pb";
import { LimitRequestService } from "#gen/limit_request_pb";
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
  items: createClient(ItemService, transport),
  limitRequests: createClient(LimitRequestService, transport),
  trees: createClient(TreeService, transport),
};

/** Whether the page offers changes: the setting ui of the server is "write". */
export const offersChanges =
  document.querySelector<HTMLMetaElement>('meta[name="quorate-mode"]')?.content === "write";
