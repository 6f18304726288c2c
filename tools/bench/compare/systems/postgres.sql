-- The quotas of tools/bench/compare. Pages have free space, so that an update needs no change of an index.
CREATE TABLE nodes (
    path text PRIMARY KEY,
    cpu_used bigint NOT NULL,
    memory_used bigint NOT NULL,
    cpu_limit bigint NOT NULL,
    memory_limit bigint NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE allocations (
    id text PRIMARY KEY,
    leaf text NOT NULL,
    middle text NOT NULL,
    top text NOT NULL
);

-- Nodes are locked from the leaf to the root, always in this order: no deadlock, and the root for the shortest time.
CREATE FUNCTION allocate(new_id text, leaf text, middle text, top text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    node text;
BEGIN
    INSERT INTO allocations VALUES (new_id, leaf, middle, top);
    FOREACH node IN ARRAY ARRAY[leaf, middle, top] LOOP
        UPDATE nodes SET cpu_used = cpu_used + 1, memory_used = memory_used + 1
            WHERE path = node AND cpu_used + 1 <= cpu_limit AND memory_used + 1 <= memory_limit;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'node % is full or unknown', node;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION release(old_id text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    ended allocations;
    node text;
BEGIN
    DELETE FROM allocations WHERE id = old_id RETURNING * INTO STRICT ended;
    FOREACH node IN ARRAY ARRAY[ended.leaf, ended.middle, ended.top] LOOP
        UPDATE nodes SET cpu_used = cpu_used - 1, memory_used = memory_used - 1 WHERE path = node;
    END LOOP;
END $$;
