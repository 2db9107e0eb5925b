// What the fields of a task mean.

export const called = (task) => task.name || "#" + task.id;

// workerOf returns the member that works on the task or was the last to do so; "" for none.
export const workerOf = (t) => (t.state === "failed" && t.failedBy) || t.owner || t.completedBy || "";
