"""The content side: the queue, the five phases, prompts, the quality gate and the synchronous runner."""
